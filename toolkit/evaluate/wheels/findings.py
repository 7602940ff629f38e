"""Defects of a set of wheels, and gaps in it: one finding each, with a code that scripts may rely on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gilscope.toolkit.evaluate.facts import Effect


class WheelCode(StrEnum):
    """The code of a finding."""

    # read from the files
    FILE_FOR_ANOTHER_BUILD = "wheel.file-for-another-build"
    FILE_FOR_ANOTHER_PLATFORM = "wheel.file-for-another-platform"
    TAG_TOO_WIDE = "wheel.tag-too-wide"
    EXTENSION_IN_PURE_WHEEL = "wheel.extension-in-pure-wheel"
    ABI3_WITHOUT_GIL = "wheel.abi3-file-without-gil"
    UNTAGGED_FILE = "wheel.untagged-file"
    COMPILED_FOR_ANOTHER_BUILD = "wheel.compiled-for-another-build"
    OTHER_TAGS_INSIDE = "wheel.other-tags-inside"
    NO_KNOWN_BUILD = "wheel.no-known-build"
    METADATA_DIFFERS = "metadata.differs"
    CLASSIFIER_CONTRADICTED = "metadata.classifier-contradicted"
    CLASSIFIER_ABSENT = "metadata.classifier-absent"
    # what is not in the set
    NO_WHEEL = "missing.wheel"
    SDIST_ONLY = "missing.wheel-but-sdist"
    PLATFORM = "missing.platform"
    C_CODE = "missing.c-code"
    TWIN = "missing.twin"
    # found by installing and importing
    NOT_INSTALLED = "import.not-installed"
    TURNS_GIL_ON = "import.turns-gil-on"
    LOSES_C_CODE = "import.loses-c-code"
    CRASHES = "import.crashes"
    HANGS = "import.hangs"
    FAILS = "import.cannot-be-imported"
    UNKNOWN = "import.unknown"
    INTERPRETER_AT_FAULT = "import.interpreter-at-fault"
    DEPENDENCY = "import.dependency-blocks"
    NOT_RUN = "import.not-run"
    NO_SUBINTERPRETERS = "import.no-subinterpreters"

    @property
    def is_missing(self) -> bool:
        """True if it is about something that is not there."""
        return self.value.startswith("missing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFinding:
    """One thing that was found about a set of wheels."""

    code: WheelCode
    effect: Effect                  # BLOCKS, UNKNOWN, CAUTION or NOTE
    text: str                       # written once, read by people alone
    builds: tuple[str, ...] = ()    # labels; () for all
    wheel: str = ""                 # file name; "" for the set
    files: tuple[str, ...] = ()     # inside the wheel
    package: str = ""               # the dependency that it is about

    @property
    def blocks(self) -> bool:
        """True if it keeps users of a build from running the project there without the GIL."""
        return self.effect is Effect.BLOCKS
