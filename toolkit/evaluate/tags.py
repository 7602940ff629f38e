"""The first pass, without a network: which file of a lock an installer would take on each build.

Metadata only: one package in fifteen that has a wheel for a free-threaded build turns the GIL on when it is imported.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from packaging import tags
from packaging.markers import InvalidMarker, Marker
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from toolkit.builds.inspection import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.tags import Tag

    from toolkit.evaluate.locks import Locked
    from toolkit.model import Build

Kind = Literal["binary", "pure", "sdist", "nothing", "not known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a lock has of one package for one build."""

    name: str
    version: str
    kind: Kind
    wheel: str = ""     # the file that an installer would take
    note: str = ""      # what a reader must know: a pure twin beside binaries, a newer libc asked for


def offered(locked: Sequence[Locked], build: Build) -> tuple[Offered, ...]:
    """Return what each package of a lock that applies to `build` has for it, by name."""
    environment = marker_environment(build)
    return tuple(_offer(each, build) for each in locked if _applies(each.marker, environment))


def supported(build: Build) -> list[Tag]:
    """Return the tags of wheels that `build` takes on this machine, the best first.

    Source: the platform compatibility tags of packaging.python.org; PEP 803 for abi3t.
    """
    return list(_supported(version_key(build.version)[:2], build.free_threaded))


@cache
def _supported(version: tuple[int, int], free_threaded: bool) -> tuple[Tag, ...]:  # noqa: FBT001 - the cache's key
    platforms = list(tags.platform_tags())
    abi = f"cp{version[0]}{version[1]}{'t' if free_threaded else ''}"
    own = tags.cpython_tags(version, abis=[abi], platforms=platforms)
    return (*own, *tags.compatible_tags(version, f"cp{version[0]}{version[1]}", platforms))


def marker_environment(build: Build) -> dict[str, str]:
    """Return what PEP 508 markers are evaluated against on `build`, here."""
    numbers = version_key(build.version)
    return {
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "implementation_version": build.version, "python_full_version": ".".join(map(str, numbers[:3])),
        "python_version": f"{numbers[0]}.{numbers[1]}", "sys_platform": sys.platform, "os_name": "posix",
        "platform_machine": platform.machine(), "platform_system": platform.system(),
        "platform_release": platform.release(), "platform_version": platform.version(), "extra": "",
    }


def _applies(marker: str, environment: dict[str, str]) -> bool:
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(environment)
    except (InvalidMarker, KeyError, ValueError):
        return True   # extras and groups of lock files (PEP 751): better one too many than one too few


def _offer(locked: Locked, build: Build) -> Offered:
    if not locked.files_known:
        return Offered(name=locked.name, version=locked.version, kind="not known",
                       note="the lock names no files; a real install tells")
    wheels = list(_parsed(locked.wheels))
    ranks = {tag: place for place, tag in enumerate(supported(build))}
    fitting = [(min(ranks[tag] for tag in found & ranks.keys()), name, found) for name, found in wheels
               if found & ranks.keys()]
    if fitting:
        _, name, found = min(fitting)
        return _chosen(locked, name, found, wheels)
    if locked.sdist:
        return Offered(name=locked.name, version=locked.version, kind="sdist", note=_why_none(wheels, build))
    return Offered(name=locked.name, version=locked.version, kind="nothing", note=_why_none(wheels, build))


def _chosen(locked: Locked, name: str, found: frozenset[Tag], wheels: Iterable[tuple[str, frozenset[Tag]]]) -> Offered:
    pure = all(tag.abi == "none" and tag.platform == "any" for tag in found)
    # An installer takes the pure one without a word, and the C code is lost.
    binaries = [other for other, theirs in wheels if any(tag.platform != "any" for tag in theirs)]
    note = f"pure Python, although {len(binaries)} wheels of other builds have C code" if pure and binaries else ""
    return Offered(name=locked.name, version=locked.version, kind="pure" if pure else "binary", wheel=name, note=note)


def _why_none(wheels: Sequence[tuple[str, frozenset[Tag]]], build: Build) -> str:
    """Return what is known of why no wheel fits: another build's only, another platform's, or a newer libc."""
    if not wheels:
        return "no wheel at all"
    wanted = {(tag.interpreter, tag.abi) for tag in supported(build)}
    near = [tag for _, found in wheels for tag in found if (tag.interpreter, tag.abi) in wanted]
    here = [tag for tag in near if tag.platform.endswith(platform.machine()) and "linux" in tag.platform]
    if here and sys.platform == "linux":
        return f"its wheels for {build.label} ask for a newer or another C library ({here[0].platform})"
    if near:
        return f"its wheels for {build.label} are for other platforms"
    return f"no wheel for {build.label} ({len(wheels)} for others)"


def _parsed(names: Iterable[str]) -> Iterable[tuple[str, frozenset[Tag]]]:
    for name in names:
        try:
            yield name, parse_wheel_filename(name)[3]
        except InvalidWheelFilename:
            continue   # an index may hold anything
