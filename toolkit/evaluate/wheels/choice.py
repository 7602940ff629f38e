"""The file of a set that an installer takes for a build on this machine, or the reason why it takes none.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.evaluate.requirements.wheel_for_build import supported, why_no_wheel
from gilscope.toolkit.evaluate.wheel_tags import installing, kind_of
from gilscope.toolkit.evaluate.wheels.files import SourceFile, WheelFile
from gilscope.toolkit.evaluate.wheels.rules import python_allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.evaluate.wheels.files import Distributable
    from gilscope.toolkit.model import Build


class WhyNoWheel(StrEnum):
    """Why an installer takes no wheel of a set."""

    NO_WHEELS = "no-wheels"                # the set has none
    REQUIRES_PYTHON = "requires-python"    # one fits, but refuses this version
    OTHER_PLATFORM = "other-platform"      # those for this build are for other platforms, or a newer C library
    OTHER_BUILDS = "other-builds"
    ABI3_ONLY = "abi3-only"                # which needs the GIL


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChoice:
    """The file that an installer takes; no wheel has a reason."""

    file: Distributable | None
    why: WhyNoWheel | None = None
    reason: str = ""

    @property
    def wheel(self) -> WheelFile | None:
        """The file if it is a wheel."""
        return self.file if isinstance(self.file, WheelFile) else None


def choose(files: Sequence[Distributable], build: Build) -> FileChoice:
    """Return the file that an installer takes for a build on this machine.

    Source: the platform compatibility tags of packaging.python.org; of equal wheels, the one with the higher build
    number, by the binary distribution format there.
    """
    wheels = [each for each in files if isinstance(each, WheelFile)]
    ranks = {tag: place for place, tag in enumerate(supported(build))}
    fitting = [each for each in wheels if each.tags & ranks.keys()]
    allowed = [each for each in fitting if _allowed(each, build)]

    def place(wheel: WheelFile) -> tuple[int, int, str]:
        best = min(ranks[tag] for tag in wheel.tags & ranks.keys())
        return best, -wheel.number[0] if wheel.number else 0, wheel.path.name

    if allowed:
        return FileChoice(file=min(allowed, key=place))
    why, reason = _why_none(wheels, fitting, build)
    source = next((each for each in files if isinstance(each, SourceFile) and _allowed(each, build)), None)
    return FileChoice(file=source, why=why, reason=reason)


def _allowed(file: Distributable, build: Build) -> bool:
    patch = version_key(build.version)[2]
    return python_allowed(file.metadata.requires_python, kind_of(build), patch)


def _why_none(
    wheels: Sequence[WheelFile], fitting: Sequence[WheelFile], build: Build
) -> tuple[WhyNoWheel, str]:
    if fitting:
        return WhyNoWheel.REQUIRES_PYTHON, (f"{fitting[0].path.name} fits, but its Requires-Python is "
                                            f"{fitting[0].metadata.requires_python}")
    if not wheels:
        return WhyNoWheel.NO_WHEELS, "there is no wheel"
    told = why_no_wheel([each.path.name for each in wheels], build)
    kind = kind_of(build)
    if any(kind in installing(each.tags) for each in wheels):
        return WhyNoWheel.OTHER_PLATFORM, told
    if build.free_threaded and _abi3(wheels) and not any(
            each.free_threaded for wheel in wheels for each in installing(wheel.tags)):
        return WhyNoWheel.ABI3_ONLY, told
    return WhyNoWheel.OTHER_BUILDS, told


def _abi3(wheels: Iterable[WheelFile]) -> bool:
    return any(tag.abi == "abi3" for each in wheels for tag in each.tags)
