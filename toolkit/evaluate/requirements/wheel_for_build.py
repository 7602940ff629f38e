"""Choose the wheel of a lock that an installer would take on each build, from metadata alone and without a network.

A wheel is not yet proof: one package in fifteen with a wheel for a free-threaded build turns the GIL on when imported.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from packaging import tags
from packaging.markers import InvalidMarker, Marker
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.units import counted, inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.tags import Tag

    from gilscope.toolkit.evaluate.requirements.locks import LockedPackage
    from gilscope.toolkit.model import Build

WheelKind = Literal["binary", "pure", "sdist", "nothing", "not known"]
# The manylinux tags from before PEP 600, with their versions of glibc.
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_LIBC = re.compile(r"(manylinux1|manylinux2010|manylinux2014)_|(many|musl)linux_(\d+)_(\d+)_")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelChoice:
    """The file that a lock offers of one package for one build."""

    name: str
    version: str
    kind: WheelKind
    wheel: str = ""     # file name
    note: str = ""      # a warning, such as a pure wheel beside binary ones, or why no wheel fits
    libc: str = ""      # the oldest C library that the wheel runs with: "glibc 2.28"
    needed_by: tuple[str, ...] = ()   # packages of the lock that depend on it, if the format records them


def choose_wheels(locked: Sequence[LockedPackage], build: Build) -> tuple[WheelChoice, ...]:
    """Return the choice for each package of a lock that applies to `build`."""
    environment = marker_environment(build)
    owners: dict[str, list[str]] = {}
    for each in locked:
        for name in each.needs:
            owners.setdefault(name, []).append(each.name)
    return tuple(replace(_offer(each, build), needed_by=tuple(dict.fromkeys(owners.get(each.name, ()))))
                 for each in locked if applies(each.marker, environment))


def libc_floor(platforms: Iterable[str]) -> str:
    """Return the oldest C library that a wheel with these platform tags runs with, "" if they name none.

    Source: PEP 600, with the names of PEP 513, 571 and 599; PEP 656 for musl.
    """
    found = [("glibc", _LEGACY[match[1]]) if match[1] else ("musl" if match[2] == "musl" else "glibc",
                                                            (int(match[3]), int(match[4])))
             for text in platforms if (match := _LIBC.match(text))]
    if not found:
        return ""
    kind, (major, minor) = min(found)
    return f"{kind} {major}.{minor}"


def platforms_of(wheel_tags: Iterable[str]) -> list[str]:
    """Return the platforms in tags like "cp314-cp314t-manylinux_2_28_x86_64"."""
    return [tag.split("-", 2)[-1] for tag in wheel_tags]


def why_no_wheel(files: Iterable[str], build: Build) -> str:
    """Return why none of the wheels with the names `files` fits `build`."""
    return _why_none(list(_parsed(files)), build)


def supported(build: Build) -> list[Tag]:
    """Return the tags of wheels that `build` accepts on this machine, best first.

    Source: the platform compatibility tags of packaging.python.org; PEP 803 for abi3t.
    """
    return list(_supported(version_key(build.version)[:2], build.free_threaded))


@cache
def _ranks(version: tuple[int, int], free_threaded: bool) -> dict[Tag, int]:  # noqa: FBT001 - the cache's key
    return {tag: place for place, tag in enumerate(_supported(version, free_threaded))}


@cache
def _supported(version: tuple[int, int], free_threaded: bool) -> tuple[Tag, ...]:  # noqa: FBT001 - the cache's key
    platforms = list(tags.platform_tags())
    abi = f"cp{version[0]}{version[1]}{'t' if free_threaded else ''}"
    own = tags.cpython_tags(version, abis=[abi], platforms=platforms)
    return (*own, *tags.compatible_tags(version, f"cp{version[0]}{version[1]}", platforms))


def marker_environment(build: Build) -> dict[str, str]:
    """Return the environment for evaluating PEP 508 markers on `build` and this machine."""
    numbers = version_key(build.version)
    return {
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "implementation_version": build.version, "python_full_version": ".".join(map(str, numbers[:3])),
        "python_version": f"{numbers[0]}.{numbers[1]}", "sys_platform": sys.platform, "os_name": "posix",
        "platform_machine": platform.machine(), "platform_system": platform.system(),
        "platform_release": platform.release(), "platform_version": platform.version(), "extra": "",
    }


def applies(marker: str, environment: dict[str, str]) -> bool:
    """Return True if a requirement with this marker ("" for none) applies in an environment of `marker_environment`."""
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(environment)
    except (InvalidMarker, KeyError, ValueError):
        return True   # a marker with extras or groups (PEP 751): better one package too many than one too few


def _offer(locked: LockedPackage, build: Build) -> WheelChoice:
    if not locked.files_known:
        return WheelChoice(name=locked.name, version=locked.version, kind="not known",
                           note="the lock names no files; only an installation shows")
    wheels = list(_parsed(locked.wheels))
    ranks = _ranks(version_key(build.version)[:2], build.free_threaded)
    fitting = [(min(ranks[tag] for tag in found & ranks.keys()), name, found) for name, found in wheels
               if found & ranks.keys()]
    if fitting:
        _, name, found = min(fitting)
        return _chosen(locked, name, found, wheels)
    if locked.sdist:
        return WheelChoice(name=locked.name, version=locked.version, kind="sdist", note=_why_none(wheels, build))
    return WheelChoice(name=locked.name, version=locked.version, kind="nothing", note=_why_none(wheels, build))


def _chosen(locked: LockedPackage, name: str, found: frozenset[Tag],
            wheels: Iterable[tuple[str, frozenset[Tag]]]) -> WheelChoice:
    pure = all(tag.abi == "none" and tag.platform == "any" for tag in found)
    # An installer takes the pure wheel silently, and the C code is lost.
    binaries = [other for other, theirs in wheels if any(tag.platform != "any" for tag in theirs)]
    others = f"{counted(len(binaries), 'wheel')} of other builds {inflect(len(binaries), 'has', 'have')} C code"
    note = f"pure Python, although {others}" if pure and binaries else ""
    return WheelChoice(name=locked.name, version=locked.version, kind="pure" if pure else "binary", wheel=name,
                       note=note, libc=libc_floor(tag.platform for tag in found))


def _why_none(wheels: Sequence[tuple[str, frozenset[Tag]]], build: Build) -> str:
    """Return the reason why no wheel fits: they are for other builds, other platforms, or a newer libc."""
    if not wheels:
        return "no wheel at all"
    wanted = {(tag.interpreter, tag.abi) for tag in supported(build)}
    near = [tag.platform for _, found in wheels for tag in found if (tag.interpreter, tag.abi) in wanted]
    here = [name for name in near if name.endswith(f"_{platform.machine()}")]
    if here and (floor := libc_floor([name for name in here if name.startswith("manylinux")] or here)):
        return f"its wheels for {build.label} are for {floor} or newer, and here is {' '.join(_libc_here())}"
    if near:
        return f"its wheels for {build.label} are for other platforms"
    return _other_builds([tag for _, found in wheels for tag in found], len(wheels), build)


def _other_builds(found: Sequence[Tag], count: int, build: Build) -> str:
    """Return a sentence on the builds that the wheels are for, none of which is `build`."""
    free = sorted({match[1] for tag in found if (match := re.fullmatch(r"cp(3\d+)t", tag.abi))}, key=int)
    others = f"no wheel for {build.label} ({counted(count, 'other wheel')}"
    if not build.free_threaded:
        return f"{others})"
    if free:
        return f"{others}, including {', '.join(f'{text[0]}.{text[1:]}t' for text in free)})"
    if any(tag.abi == "abi3" for tag in found):
        return f"{others}: abi3, which no build without a GIL can load)"   # PEP 703: another layout of objects
    return f"{others}, none without a GIL)"


@cache
def _libc_here() -> tuple[str, str]:
    kind, version = platform.libc_ver()
    return (kind, version) if kind else ("musl", "")


def _parsed(names: Iterable[str]) -> Iterable[tuple[str, frozenset[Tag]]]:
    for name in names:
        if found := _tags_of(name):
            yield name, found


@cache   # a lock is read for several builds
def _tags_of(name: str) -> frozenset[Tag]:
    """Return the tags of a wheel; none for an invalid file name, as an index may contain anything."""
    try:
        return parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return frozenset()
