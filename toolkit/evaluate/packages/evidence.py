"""The facts about a package on one build: its files, what importing it did, and the status that follows.

All are frozen and plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from gilscope.toolkit.builds.package_installer import InstallProblem  # noqa: TC001 - the cache reads the hints
from gilscope.toolkit.children.asking import EndingKind  # noqa: TC001 - the cache reads the hints

GilNeed = Literal["used", "not-used"]
InterpreterSupport = Literal["none", "shared-gil", "own-gil"]
ImportPart = Literal["roots", "sweep", "extensions"]   # the package; its other modules; extension modules by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A package as installed in one environment."""

    name: str                               # normalised: "pydantic-core"
    version: str
    modules: tuple[str, ...]                # top-level modules and packages
    inner: tuple[str, ...]                  # modules inside the packages
    extensions: tuple[tuple[str, str], ...]  # module name and file
    tags: tuple[str, ...]                   # tags of its wheel: "cp314-cp314t-manylinux_2_28_x86_64"
    pure: bool                              # its wheel contains no compiled code
    requires: tuple[str, ...] = ()          # normalised names of its direct dependencies


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The declarations of one extension file, read from its slots in the build that would load it."""

    name: str
    file: str
    init: str | None = None                 # "multi-phase", "single-phase" or "export"; None if unknown
    gil: GilNeed | None = None                  # None if undeclared on a build with a GIL, or unknown
    interpreters: InterpreterSupport | None = None
    problem: str = ""                       # why its declarations could not be read
    damaged: bool = False                   # not a complete shared library: no build can load it


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStep:
    """A frame between an import statement and the extension module that it loads."""

    module: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionLoad:
    """An attempt to load one extension module."""

    name: str
    file: str
    gil: GilNeed | None                         # the module object's flag; None on builds with a GIL
    flipped: bool                           # True if loading turned the GIL on
    error: str | None
    part: ImportPart                              # the part of the package that was being imported
    chain: tuple[ImportStep, ...]                 # outermost first
    swallowed: bool = False                 # it failed, and the importing module succeeded nevertheless
    asking: str = ""                        # the requested module that was being imported


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRun:
    """The result of importing a package in one process or interpreter."""

    imported: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]     # module and error
    loads: tuple[ExtensionLoad, ...]
    kind: EndingKind                        # "done", or how the process ended
    reason: str                             # one line
    during: str                             # the module that was being imported or loaded when it ended
    gil_on: bool | None                     # at the end; None if the process did not get there
    stdlib: tuple[str, ...]                 # loaded modules of the standard library
    present: tuple[str, ...] = ()           # the package's extension modules in `sys.modules` at the end
    output: str = ""                        # the last lines of output, if it did not come to its end

    @property
    def loaded(self) -> frozenset[str]:
        """Names of the extension modules that were loaded."""
        return frozenset(load.name for load in self.loads if load.error is None) | frozenset(self.present)

    @property
    def place(self) -> str:
        """A phrase for the point at which the process ended; "" if unknown."""
        if self.during == "ending":
            return " while ending"
        return f" while importing {self.during}" if self.during else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageEvidence:
    """Everything known about one distribution on one build."""

    distribution: Distribution | None        # None if it could not be installed
    missing: InstallProblem | None = None    # why it could not be installed; None if it was
    newer: str = ""                          # the newest version if it has no wheel and an older one was installed
    free_threaded: bool = True               # of the build; otherwise the GIL is always on
    extensions: tuple[Extension, ...] = ()
    run: ImportRun | None = None             # imported as a program would
    forced: ImportRun | None = None          # with the GIL forced off, if the package turned it on
    reference: ImportRun | None = None       # on the build with a GIL of the same minor version
    reference_distribution: Distribution | None = None
    control: ImportRun | None = None         # the standard library alone, if something broke
    interpreters: tuple[ImportRun, ...] = ()
    interpreters_control: tuple[ImportRun, ...] = ()


class Status(StrEnum):
    """The status of a distribution on a build; the code of the fact is "package." and this one."""

    READY = "ready"              # what it loads needs no GIL, and it has all its C code
    PURE = "pure-python"         # also on the build with the GIL
    GIL = "turns-gil-on"
    LOST = "loses-c-code"
    NO_WHEEL = "no-wheel"
    NOT_FOUND = "not-found"      # no index in use has this package or version
    CRASH = "crashes"
    HANG = "hangs"
    FAILS = "cannot-be-imported"
    UNKNOWN = "unknown"          # an extension file can be neither read nor loaded; never called ready
    INTERPRETER = "interpreter-at-fault"   # importing the standard library alone does the same

    @property
    def words(self) -> str:
        """The status as people read it."""
        return _STATES[self].words

    @property
    def clause(self) -> str:
        """The words that follow the package's name in a sentence."""
        return _STATES[self].clause or self.words

    @property
    def advice(self) -> str:
        """What to do about the package `{name}`; "" if there is nothing to do."""
        return _STATES[self].advice

    @property
    def blocks(self) -> bool:
        """True if the distribution keeps a program that needs it from running without the GIL."""
        return _STATES[self].blocks

    @property
    def not_installed(self) -> bool:
        """True if the distribution could not be installed; the installer's message is the reason."""
        return self in {Status.NO_WHEEL, Status.NOT_FOUND}

    @property
    def mends(self) -> bool:
        """True if another version with this status is a way out: nothing is in the way."""
        return self in {Status.READY, Status.PURE}

    @property
    def unjudged(self) -> bool:
        """True if the status does not tell whether the distribution can do without the GIL."""
        return not (self.blocks or self.mends)


class _State(NamedTuple):
    """What is said of a status, and what follows from it."""

    words: str
    clause: str = ""      # "": the words
    advice: str = ""
    blocks: bool = False


# A state of a package is a member of `Status` with its row here.  Codes of facts and findings follow from it.
_STATES = {
    Status.READY: _State("ready"),
    Status.PURE: _State("pure Python"),
    Status.GIL: _State(
        "turns the GIL on", blocks=True,
        advice="look for a newer version of {name} that declares itself safe without the GIL, or do without it"),
    Status.LOST: _State(
        "loses its C code", blocks=True,
        advice="{name} runs without its C code: measure what that costs you, or pin a build that has a wheel"),
    Status.NO_WHEEL: _State(
        "no wheel", "has no wheel", blocks=True,
        advice="{name} has no wheel: build it from source (--build-sdists), or replace it"),
    Status.NOT_FOUND: _State(
        "not found", "was not found", blocks=True,
        advice="{name} was not found: look at its spelling and version, and at the index in use"),
    Status.CRASH: _State(
        "crashes", blocks=True, advice="report the crash of {name} to its owners; --explain {name} has its stack"),
    Status.HANG: _State(
        "did not end in time", blocks=True,
        advice="tell the owners of {name} that its import did not end; --explain {name} shows where it stood"),
    Status.FAILS: _State(
        "cannot be imported", blocks=True, advice="{name} cannot be imported: --explain {name} has the error"),
    Status.UNKNOWN: _State(
        "unknown", "could not be judged", advice="{name} could not be judged: --explain {name} says why"),
    Status.INTERPRETER: _State("interpreter at fault", "could not be judged, which is Python's fault"),
}


class InterpreterStatus(StrEnum):
    """The status of a distribution in interpreters with their own GIL."""

    OK = "ok"
    LOST = "loses-c-code"
    FAILS = "cannot-be-imported"
    CRASH = "crashes"
    HANG = "hangs"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The status as people read it."""
        return _INSIDE[self][0]

    @property
    def clause(self) -> str:
        """The words that follow the package's name in a sentence."""
        return _INSIDE[self][1] or self.words


_INSIDE = {   # its words, and its clause; "": the words
    InterpreterStatus.OK: ("ok", ""), InterpreterStatus.LOST: ("loses its C code", ""),
    InterpreterStatus.FAILS: ("ImportError", "cannot be imported"), InterpreterStatus.CRASH: ("crashes", ""),
    InterpreterStatus.HANG: ("did not end in time", ""), InterpreterStatus.UNKNOWN: ("not known", "is not known"),
}


@dataclass(frozen=True, slots=True)
class InterpreterReason:
    """A reason for the status of a distribution in interpreters with their own GIL."""

    text: str
    refused: str = ""   # the extension module that such an interpreter refuses to load

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVerdict:
    """The status of a distribution, with one sentence for each reason."""

    status: Status
    reasons: tuple[str, ...] = ()
