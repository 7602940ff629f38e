"""Wheels for environments, by the pip that comes with a build: several fetched at once, and kept for the next one.

Only pip needs this: uv keeps what it fetched, and asks an index about many packages at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from gilscope.toolkit.builds.packages.environment import python_of
from gilscope.toolkit.builds.packages.installer import INSTALL_SECONDS, run_installer
from gilscope.toolkit.builds.pairing import minor_of
from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.evaluate.children.asking import ask
from gilscope.toolkit.evaluate.packages.install.eviction import WHEELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.model import Build

AT_ONCE = 4                    # downloads of one environment: most of their time they wait for the index
KEPT_SECONDS = 24 * 3600.0     # a wheel may be withdrawn, and they take space
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")
WHEELS_ONLY = ("--only-binary", ":all:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came of asking the index for one version."""

    problem: str                # what pip said; "" when its wheel is there
    files: tuple[str, ...]      # that the index has of this version, when it was asked about them
    newest: str = ""            # the newest version of which it has any, likewise; "": it does not know the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """The pip of a build, working on one environment."""

    folder: Path                # that holds pip's own package
    environment: Path

    def run(self, *words: str | Path) -> str:
        """Run it; return "" or its last lines when it fails."""
        return run_installer([python_of(self.environment), "-I", self.folder / "pip", *words])

    def download(self, requirements: Sequence[str], into: Path) -> str:
        """Choose versions of requirements and of all that they need, and fetch those; return why not."""
        return self.run("download", *QUIET, *WHEELS_ONLY, "--dest", into, *requirements)

    def newest(self, names: Sequence[str], report: Path) -> dict[str, str]:
        """Return the newest version of each distribution that has a wheel; nothing when one has none."""
        if self.run("install", *QUIET, *WHEELS_ONLY, "--dry-run", "--ignore-installed", "--no-deps", "--report", report,
                    *names):
            return {}
        told = [each["metadata"] for each in json.loads(report.read_text(encoding="utf-8"))["install"]]
        return {canonicalize_name(each["name"]): str(each["version"]) for each in told}

    def install(self, files: Iterable[Path]) -> str:
        """Install wheels as they are; return why not."""
        wanted = sorted(files)
        # Most modules are never imported; the others are compiled then.
        return self.run("install", *QUIET, "--no-index", "--no-deps", "--no-compile", *wanted) if wanted else ""

    def fetch(self, pins: Sequence[str], into: Path) -> dict[str, Fetched]:
        """Fetch the wheel of each exact version, without what it needs, several at once; all that fail are known."""
        told = self._each([["download", *QUIET, *WHEELS_ONLY, "--no-deps", "--dest", str(into), pin] for pin in pins])
        found = {pin: Fetched(problem=told[number][0], files=()) for number, pin in enumerate(pins)}
        failed = [pin for pin in pins if found[pin].problem]
        # Only at its most talkative it tells what it passed over.
        asked = self._each([["download", "-vvv", "--disable-pip-version-check", "--no-input", *WHEELS_ONLY, "--no-deps",
                             "--dest", str(into), pin] for pin in failed])
        for number, pin in enumerate(failed):
            files = asked[number][1]
            found[pin] = replace(found[pin], files=tuple(of_version(files, pin)),
                                 newest=str(max(by_version(files, pin), default="")))
        return found

    def _each(self, runs: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
        """Return of each run what it said when it failed, and the names of files in what it printed."""
        if not runs:
            return []
        job = {"runs": runs, "pip": str(self.folder), "at_once": AT_ONCE}
        told = ask(python_of(self.environment), "gilscope.toolkit.evaluate.packages.install.pip_child", "main", job,
                   limit=INSTALL_SECONDS, whose="users")
        silent = {"code": 1, "output": told.ending.reason or "no answer", "files": []}
        answers = {int(record["number"]): record for record in told.records}
        ended = [answers.get(number, silent) for number in range(len(runs))]
        return [(str(each["output"]).strip() or f"pip ended with {each['code']}" if each["code"] else "", each["files"])
                for each in ended]


def pip_of(build: Build, environment: Path) -> Pip | None:
    """Return the pip that `build` comes with, unpacked once for all its environments; None when it has none.

    A copy of it in each environment would take longer to make than what is asked of it.
    """
    lib = Path(build.base_executable).resolve().parent.parent / "lib"
    kind = "t" if build.free_threaded else ""
    bundled = sorted((lib / f"python{minor_of(build)}{kind}" / "ensurepip" / "_bundled").glob("pip-*.whl"))
    if not bundled:
        return None
    folder = cache_dir() / "pip" / bundled[-1].stem
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
        with zipfile.ZipFile(bundled[-1]) as wheel:
            wheel.extractall(fresh)
        with contextlib.suppress(OSError):   # somebody else made it in between
            fresh.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
    return Pip(folder=folder, environment=environment)


def make(pip: Pip, build: Build) -> str:
    """Make an empty environment of `build` that has this pip; return why not."""
    folder = pip.environment
    folder.parent.mkdir(parents=True, exist_ok=True)
    if problem := run_installer([build.base_executable, "-I", "-m", "venv", "--without-pip", folder]):
        return problem
    (site,) = {path.resolve() for path in folder.glob("lib/python3*/site-packages")}
    for part in pip.folder.iterdir():
        # What uninstalls pip there takes away names of files, not the files that others share.
        shutil.copytree(part, site / part.name, copy_function=_link)
    return ""


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:   # another file system, or one without links
        shutil.copy2(source, target)


class Store:
    """Wheels that were fetched in the last day: those for one build, and those that suit every build."""

    def __init__(self, build: Build) -> None:
        """Open the store of a build."""
        self._root = cache_dir() / WHEELS
        self._own = self._root / f"{build.version}{'t' if build.free_threaded else ''}"
        self._any = self._root / "any"
        # A build without a GIL, or one before its release, may be given the pure twin of what others have compiled.
        self._vouches = not build.free_threaded and build.version.rstrip("+").replace(".", "").isdigit()
        for folder in (self._own, self._any):
            folder.mkdir(parents=True, exist_ok=True)

    def fresh(self) -> tempfile.TemporaryDirectory[str]:
        """Return a folder to fetch into, which goes when it is closed."""
        return tempfile.TemporaryDirectory(dir=self._root, ignore_cleanup_errors=True)

    def keep(self, files: Iterable[Path]) -> None:
        """Take files over from where they were fetched."""
        for file in files:
            # A release with a GIL got no compiled wheel of it, so nobody does.
            suits_all = self._vouches and file.name.endswith("-none-any.whl")
            os.utime(file)
            file.replace((self._any if suits_all else self._own) / file.name)

    def find(self, pins: Iterable[str]) -> dict[str, Path]:
        """Return the wheels of exact versions that are here."""
        found: dict[tuple[str, Version] | None, Path] = {}
        late = time.time() - KEPT_SECONDS
        for folder in (self._any, self._own):   # its own, where it has one
            for file in folder.glob("*.whl"):
                with contextlib.suppress(OSError, InvalidWheelFilename):
                    if file.stat().st_mtime > late:
                        name, version, *_ = parse_wheel_filename(file.name)
                        found[name, version] = file
        return {pin: found[_parsed(pin)] for pin in pins if _parsed(pin) in found}

    def remove_old(self) -> None:
        """Remove what is not used any more."""
        late = time.time() - KEPT_SECONDS
        for file in self._root.glob("*/*"):
            with contextlib.suppress(OSError):
                if file.stat().st_mtime < late:
                    file.unlink()


def by_version(files: Iterable[str], requirement: str) -> dict[Version, list[str]]:
    """Return those of an index's files that are of the distribution which a requirement names, by their versions."""
    named = canonicalize_name(re.split(r"[^\w.-]", requirement.partition(";")[0].partition("==")[0].strip())[0])
    found: dict[Version, list[str]] = {}
    for file in files:
        with contextlib.suppress(InvalidWheelFilename, InvalidSdistFilename):
            told = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
            if told[0] == named:
                found.setdefault(told[1], []).append(file)
    return found


def of_version(files: Iterable[str], requirement: str) -> list[str]:
    """Return those of an index's files that are of the version in "name==version", without one of the newest."""
    found = by_version(files, requirement)
    wanted = requirement.partition(";")[0].partition("==")[2].strip()
    try:
        return found.get(Version(wanted) if wanted else max(found, default=Version("0")), [])
    except InvalidVersion:
        return []   # older than the rules for versions


def _parsed(pin: str) -> tuple[str, Version] | None:
    name, _, version = pin.partition("==")
    try:
        return canonicalize_name(name), Version(version)
    except InvalidVersion:
        return None   # pip tells
