"""The kinds of build that install a wheel with some tag, and those that load an extension file with some suffix.

From names alone, for builds that may not be at hand and platforms other than this one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.builds.versions import FIRST_FREE_THREADED, NEWEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from packaging.tags import Tag

    from gilscope.toolkit.model import Build

FIRST_ABI3T = 15              # 3.15: PEP 803
_MINORS = range(8, NEWEST + 1)   # a wheel for later ones only is for no kind known here
EVERY_VERSION = f"3.{_MINORS[0]} to 3.{_MINORS[-1]}"

_ONE_BUILD = re.compile(r"cp3(\d+)(t?)")
_FROM_VERSION = re.compile(r"(?:py|cp)3(\d*)")
_SUFFIX = re.compile(
    r"(?P<name>[^.]+)\."
    r"(?:(?:cpython-3(?P<unix>\d+)(?P<unix_flags>[a-z]*)(?:-(?P<triplet>[^.]*))?"
    r"|cp3(?P<windows>\d+)(?P<windows_flags>[a-z]*)-(?P<windows_platform>[^.]*)"
    r"|(?P<stable>abi3t?)(?:-(?P<stable_triplet>[^.]*))?"
    r"|(?P<other>pypy|graalpy)[^.]*)\.)?(?:so|pyd)")


@dataclass(frozen=True, slots=True, order=True)
class BuildKind:
    """A minor version of CPython 3, with or without the GIL."""

    minor: int
    free_threaded: bool = False

    @property
    def label(self) -> str:
        """The usual label: "3.14t"."""
        return f"3.{self.minor}{'t' if self.free_threaded else ''}"

    @property
    def twin(self) -> BuildKind:
        """The build with the GIL of the same version."""
        return BuildKind(self.minor)


EVERY = frozenset(BuildKind(minor, free) for minor in _MINORS for free in (False, True)
                  if not free or minor >= FIRST_FREE_THREADED)


def kind_of(build: Build) -> BuildKind:
    """Return the kind of a build at hand."""
    return BuildKind(version_key(build.version)[1], build.free_threaded)


def labels(kinds: Iterable[BuildKind]) -> str:
    """Return builds for people, those with the GIL first, neighbours as a range: "3.9 to 3.15, 3.14t"."""
    runs: list[list[BuildKind]] = []
    for kind in sorted(kinds, key=lambda each: (each.free_threaded, each.minor)):
        if runs and runs[-1][-1] == BuildKind(kind.minor - 1, kind.free_threaded):
            runs[-1].append(kind)
        else:
            runs.append([kind])
    return ", ".join(run[0].label if len(run) == 1 else f"{run[0].label} to {run[-1].label}" for run in runs)


def installing(tags: Iterable[Tag]) -> frozenset[BuildKind]:
    """Return the kinds of CPython that an installer gives a wheel with these tags to, on the wheel's platforms.

    Source: the platform compatibility tags of packaging.python.org; PEP 703 (abi3 needs the GIL); PEP 803 (abi3t).
    """
    return frozenset(kind for kind in EVERY if any(_installs(tag.interpreter, tag.abi, kind) for tag in tags))


def _installs(interpreter: str, abi: str, kind: BuildKind) -> bool:
    if one := _ONE_BUILD.fullmatch(abi):
        return kind == BuildKind(int(one[1]), bool(one[2]))
    first = _FROM_VERSION.fullmatch(interpreter)
    if not first or (first[1] and int(first[1]) > kind.minor):
        return False
    if abi == "abi3":
        return not kind.free_threaded
    if abi == "abi3t":
        return kind.free_threaded and kind.minor >= FIRST_ABI3T
    # A "cp314-none" wheel is for 3.14 alone, a "py314-none" wheel also for later versions.
    return abi == "none" and (interpreter.startswith("py") or first[1] == str(kind.minor))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffix:
    """The end of an extension file's name, which tells the builds that load it."""

    module: str                       # last part of the module's name
    build: BuildKind | None = None    # for one build: "cpython-314t"
    stable: str = ""                  # for many: "abi3" or "abi3t"
    foreign: bool = False             # for another implementation, or a build for debugging
    platform: str = ""                # "x86_64-linux-gnu", "darwin", "win_amd64"; "" if it names none

    @property
    def tagged(self) -> bool:
        """True unless the file is called `name.so` or `name.pyd`, which every build loads."""
        return bool(self.build or self.stable or self.foreign)

    @property
    def words(self) -> str:
        """The suffix for people: "cp314t", "abi3", "no tag"."""
        if self.build:
            return f"cp3{self.build.minor}{'t' if self.build.free_threaded else ''}"
        return self.stable or ("another implementation" if self.foreign else "no tag")

    def loads(self, kind: BuildKind) -> bool:
        """Return True if a build looks for files with this suffix, whether they suit it or not."""
        if self.foreign:
            return False
        if self.build:
            return kind == self.build
        if self.stable == "abi3t":
            return kind.minor >= FIRST_ABI3T
        # 3.13t and 3.14t look for abi3 files although objects have another layout there; 3.15t no longer does.
        return not (self.stable == "abi3" and kind.free_threaded and kind.minor >= FIRST_ABI3T)

    def suits(self, kind: BuildKind) -> bool:
        """Return True if a build loads the file and it is made for that kind of build, as far as names tell."""
        return self.loads(kind) and not (self.stable == "abi3" and kind.free_threaded)


def suffix_of(file: str) -> Suffix | None:
    """Return the suffix in the last part of a path; None if it is not that of an extension file."""
    match = _SUFFIX.fullmatch(file)
    if not match:
        return None
    minor, flags = match["unix"] or match["windows"], match["unix_flags"] or match["windows_flags"] or ""
    platform = match["triplet"] or match["windows_platform"] or match["stable_triplet"] or ""
    if minor and flags in {"", "t"}:
        return Suffix(module=match["name"], build=BuildKind(int(minor), flags == "t"), platform=platform)
    return Suffix(module=match["name"], stable=match["stable"] or "", foreign=bool(minor or match["other"]),
                  platform=platform)


_SYSTEMS = (("linux", "linux"), ("darwin", "macosx"), ("win", "win"))   # in suffixes, in tags
_MACHINES = ("x86_64", "aarch64", "i686", "i386", "armv7l", "ppc64le", "s390x", "riscv64", "amd64", "arm64", "win32")


def other_platform(suffix: Suffix, platforms: Collection[str]) -> bool:
    """Return True if the suffix names a system or a machine that none of the wheel's platform tags is for."""
    system = next((tag for word, tag in _SYSTEMS if word in suffix.platform), "")
    # gnu against musl is not told apart: builds for musl have used both names.
    machine = next((each for each in _MACHINES if each in suffix.platform), "") if system == "linux" else ""
    if not system or "any" in platforms:
        return False
    return not any(system in each and each.endswith(machine) for each in platforms
                   if system != "win" or each.startswith("win"))


_FAMILIES = (("manylinux", "Linux"), ("musllinux", "Linux musl"), ("linux", "Linux"),
             ("macosx", "macOS"), ("win", "Windows"), ("android", "Android"), ("ios", "iOS"))
_WINDOWS = {"win32": "i386", "win_amd64": "x86_64", "win_arm64": "arm64"}


def platform_families(platforms: Iterable[str]) -> frozenset[str]:
    """Return platforms without versions of their C library: "Linux x86_64", "Linux musl x86_64", "macOS arm64"."""
    found = set()
    for each in platforms:
        name = next((words for prefix, words in _FAMILIES if each.startswith(prefix)), "")
        if each == "any" or not name:
            continue
        if each.endswith("universal2"):
            found |= {f"{name} arm64", f"{name} x86_64"}
            continue
        match = re.search(r"(x86_64|i686|[a-z0-9]+)$", each)
        machine = _WINDOWS.get(each, match[1] if match else "")
        found.add(f"{name} {machine}")
    return frozenset(found)
