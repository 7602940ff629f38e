"""Fetch wheels with the pip that comes with a build: several at once, stored for other environments.

Only needed with pip: uv has a cache of its own and queries an index for many packages at once.
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

from gilscope.toolkit.builds.environment import python_of
from gilscope.toolkit.builds.package_installer import (
    INSTALL_SECONDS,
    failure_in,
    run_installer,
    run_to_end,
    was_stopped,
)
from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages.eviction import WHEELS
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.model import Build

AT_ONCE = 4                    # downloads for one environment, which mostly wait for the index
STOPPED = "the installer was ended from outside"
KEPT_SECONDS = 24 * 3600.0     # wheels may be withdrawn from the index, and they take space
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")
WHEELS_ONLY = ("--only-binary", ":all:")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFetch:
    """The result of downloading one version."""

    problem: str                # pip's message; "" if the wheel was fetched
    files: tuple[str, ...]      # the index's files of this version; only known after a failure
    newest: str = ""            # the newest version with any file; only known after a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledPip:
    """The pip of a build, working on one environment."""

    folder: Path                # the folder that contains pip's package
    environment: Path

    def run(self, *words: str | Path) -> str:
        """Run pip; return "", or the last lines of its output if it fails."""
        return run_unless_stopped([python_of(self.environment), "-I", self.folder / "pip", *words])

    def download(self, requirements: Sequence[str], into: Path) -> str:
        """Choose versions of requirements and of their dependencies, and fetch them; return "" or the error."""
        return self.run("download", *QUIET, *WHEELS_ONLY, "--dest", into, *requirements)

    def newest(self, names: Sequence[str], report: Path) -> dict[str, str]:
        """Return the newest version with a wheel of each distribution; empty if any of them has none."""
        if self.run("install", *QUIET, *WHEELS_ONLY, "--dry-run", "--ignore-installed", "--no-deps", "--report", report,
                    *names):
            return {}
        packages = [each["metadata"] for each in json.loads(report.read_text(encoding="utf-8"))["install"]]
        return {canonicalize_name(each["name"]): str(each["version"]) for each in packages}

    def install(self, files: Iterable[Path]) -> str:
        """Install wheels without dependencies; return "" or the error."""
        wanted = sorted(files)
        # Most modules are never imported; those that are get compiled then.
        return self.run("install", *QUIET, "--no-index", "--no-deps", "--no-compile", *wanted) if wanted else ""

    def fetch(self, pins: Sequence[str], into: Path) -> dict[str, WheelFetch]:
        """Fetch the wheels of exact versions, several at once and without dependencies."""
        results = self._each([["download", *QUIET, *WHEELS_ONLY, "--no-deps", "--dest", str(into), pin]
                              for pin in pins])
        found = {pin: WheelFetch(problem=results[number][0], files=()) for number, pin in enumerate(pins)}
        failed = [pin for pin in pins if found[pin].problem]
        # Only with -vvv does pip list the files that it skipped.
        asked = self._each([["download", "-vvv", "--disable-pip-version-check", "--no-input", *WHEELS_ONLY, "--no-deps",
                             "--dest", str(into), pin] for pin in failed])
        for number, pin in enumerate(failed):
            files = asked[number][1]
            found[pin] = replace(found[pin], files=tuple(of_version(files, pin)),
                                 newest=str(max(by_version(files, pin), default="")))
        return found

    def _each(self, runs: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
        """Return, for each run of pip, its output if it failed, and the names of files in that output.

        Raises:
            BuildError: One was stopped from outside.
        """
        if not runs:
            return []
        job = {"runs": runs, "pip": str(self.folder), "at_once": AT_ONCE}
        answer = ask(python_of(self.environment), "gilscope.toolkit.evaluate.packages.pip_child", "main", job,
                     limit=INSTALL_SECONDS, whose="users")
        silent = {"code": 1, "output": answer.ending.reason or "no answer", "files": []}
        answers = {int(record["number"]): record for record in answer.records}
        ended = [answers.get(number, silent) for number in range(len(runs))]
        if any(was_stopped(int(each["code"])) for each in ended):
            raise BuildError(STOPPED)
        return [(str(each["output"]).strip() or f"pip ended with {each['code']}" if each["code"] else "", each["files"])
                for each in ended]


def run_unless_stopped(command: Sequence[str | Path]) -> str:
    """Run an installer's command; return "", or the last lines of its output if it fails.

    Raises:
        BuildError: It was stopped from outside, took too long or did not start, so nothing is known of any package.
    """
    outcome = run_to_end(command, {})
    if isinstance(outcome, str):
        raise BuildError(f"{outcome}, so nothing is known of the packages: try again")
    if was_stopped(outcome.returncode):
        raise BuildError(STOPPED)
    return failure_in(outcome)


def pip_of(build: Build, environment: Path) -> BundledPip | None:
    """Return the pip that `build` comes with, unpacked once for all its environments; None if it has none.

    A copy in each environment would take longer to make than to use.
    """
    lib = Path(build.base_executable).resolve().parent.parent / "lib"
    kind = "t" if build.free_threaded else ""
    bundled = sorted((lib / f"python{build.minor}{kind}" / "ensurepip" / "_bundled").glob("pip-*.whl"))
    if not bundled:
        return None
    folder = cache_dir() / "pip" / bundled[-1].stem
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
        with zipfile.ZipFile(bundled[-1]) as wheel:
            wheel.extractall(fresh)
        with contextlib.suppress(OSError):   # another process made it meanwhile
            fresh.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
    return BundledPip(folder=folder, environment=environment)


def make_environment(pip: BundledPip, build: Build) -> str:
    """Make an empty environment of `build` with this pip; return "" or the error."""
    folder = pip.environment
    folder.parent.mkdir(parents=True, exist_ok=True)
    if problem := run_installer([build.base_executable, "-I", "-m", "venv", "--without-pip", folder]):
        return problem
    (site,) = {path.resolve() for path in folder.glob("lib/python3*/site-packages")}
    for part in pip.folder.iterdir():
        # Uninstalling pip there removes names of files, not the files shared by links.
        shutil.copytree(part, site / part.name, copy_function=_link)
    return ""


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:   # another file system, or one without links
        shutil.copy2(source, target)


class WheelStore:
    """Wheels fetched in the last day: those for one build, and those that suit every build."""

    def __init__(self, build: Build) -> None:
        """Open the store of a build."""
        self._root = cache_dir() / WHEELS
        self._own = self._root / f"{build.version}{'t' if build.free_threaded else ''}"
        self._any = self._root / "any"
        # A free-threaded or unreleased build may get the pure wheel of a package that is compiled for other builds.
        self._vouches = not build.free_threaded and build.version.rstrip("+").replace(".", "").isdigit()
        for folder in (self._own, self._any):
            folder.mkdir(parents=True, exist_ok=True)

    def fresh(self) -> tempfile.TemporaryDirectory[str]:
        """Return a temporary folder to fetch into."""
        return tempfile.TemporaryDirectory(dir=self._root, ignore_cleanup_errors=True)

    def keep(self, files: Iterable[Path]) -> None:
        """Move fetched files into the store."""
        for file in files:
            # If a release with a GIL gets no compiled wheel, no build does.
            suits_all = self._vouches and file.name.endswith("-none-any.whl")
            os.utime(file)
            file.replace((self._any if suits_all else self._own) / file.name)

    def find(self, pins: Iterable[str]) -> dict[str, Path]:
        """Return the stored wheels of exact versions."""
        found: dict[tuple[str, Version] | None, Path] = {}
        late = time.time() - KEPT_SECONDS
        for folder in (self._any, self._own):   # the build's own wheels take precedence
            for file in folder.glob("*.whl"):
                with contextlib.suppress(OSError, InvalidWheelFilename):
                    if file.stat().st_mtime > late:
                        name, version, *_ = parse_wheel_filename(file.name)
                        found[name, version] = file
        return {pin: found[_parsed(pin)] for pin in pins if _parsed(pin) in found}

    def remove_old(self) -> None:
        """Remove wheels that are too old."""
        late = time.time() - KEPT_SECONDS
        for file in self._root.glob("*/*"):
            with contextlib.suppress(OSError):
                if file.stat().st_mtime < late:
                    file.unlink()


def by_version(files: Iterable[str], requirement: str) -> dict[Version, list[str]]:
    """Return those of an index's files that belong to the distribution in a requirement, by version."""
    named = canonicalize_name(re.split(r"[^\w.-]", requirement.partition(";")[0].partition("==")[0].strip())[0])
    found: dict[Version, list[str]] = {}
    for file in files:
        with contextlib.suppress(InvalidWheelFilename, InvalidSdistFilename):
            parsed = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
            if parsed[0] == named:
                found.setdefault(parsed[1], []).append(file)
    return found


def of_version(files: Iterable[str], requirement: str) -> list[str]:
    """Return those of an index's files that belong to the version in "name==version"; or to the newest."""
    found = by_version(files, requirement)
    wanted = requirement.partition(";")[0].partition("==")[2].strip()
    try:
        return found.get(Version(wanted) if wanted else max(found, default=Version("0")), [])
    except InvalidVersion:
        return []   # a version from before PEP 440


def _parsed(pin: str) -> tuple[str, Version] | None:
    name, _, version = pin.partition("==")
    try:
        return canonicalize_name(name), Version(version)
    except InvalidVersion:
        return None   # pip reports it
