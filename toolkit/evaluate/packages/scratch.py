"""Environments with the packages under test: one per build and request, made once and stored in the cache folder.

The newest released build with a GIL chooses the versions, because it has the most wheels; every other build gets the
same ones.  A resolver that chose freely would go back to versions from before there was a compiled part.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.environment import identity, python_of
from gilscope.toolkit.builds.inspection import is_released, version_key
from gilscope.toolkit.builds.local_projects import local_contents
from gilscope.toolkit.builds.missing_packages import has_exact_version
from gilscope.toolkit.builds.package_installer import InstallProblem, InstallProblemKind, available_versions
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.children.at_once import at_once
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages.distributions import installed, site_folders
from gilscope.toolkit.evaluate.packages.eviction import STAMP, hold, make_room, size_of
from gilscope.toolkit.evaluate.packages.fetch_wheels import WheelStore, make_environment, pip_of
from gilscope.toolkit.evaluate.packages.installing import (
    ChosenVersions,
    LocalFile,
    fill,
    install_files,
    versions_in,
)
from gilscope.toolkit.evaluate.requirements.wheel_for_build import applies, marker_environment
from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.records import from_plain, to_plain
from gilscope.toolkit.units import few
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.specifiers import SpecifierSet

    from gilscope.toolkit.evaluate.packages.evidence import Distribution
    from gilscope.toolkit.model import Build

MOST_INSTALLERS = 2                     # each keeps one core, the disk and the network busy
MOST_REQUIREMENTS = 6                   # requirements to list in a message
FRESH_SECONDS = 24 * 3600.0     # a new wheel may be out tomorrow
QUERY_SECONDS = 30.0   # for one query to the index
MOST_QUERIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRequest:
    """The packages to install."""

    requirements: tuple[str, ...]
    sdists: bool = False            # build packages without a wheel from source
    offline: bool = False           # use stored environments, however old, and make none
    asked: tuple[str, ...] = ()     # names that the user requested; empty if that is every requirement
    # By label of a build: files to install there.  They come from no index, and are stored for this request alone.
    local: Mapping[str, tuple[LocalFile, ...]] = field(default_factory=dict)

    @property
    def local_names(self) -> frozenset[str]:
        """Names of the distributions that are installed from files."""
        return frozenset(each.name for files in self.local.values() for each in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchEnvironment:
    """The environment of one build, with every package that could be installed."""

    folder: Path
    distributions: tuple[Distribution, ...]
    missing: dict[str, InstallProblem] = field(default_factory=dict)   # by distribution: why it was not installed
    newer: dict[str, str] = field(default_factory=dict)     # distribution -> its newest version, which has no wheel

    @property
    def answers(self) -> Path:
        """The folder for stored answers of child processes; removed with the environment."""
        return self.folder / "gilscope-answers"

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return python_of(self.folder)


def _refuse_unwritable(folder: Path) -> None:
    """Raise BuildError if the cache folder cannot be created or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BuildError(f"cannot write into the cache folder {folder}: {error.strerror}; set GILSCOPE_CACHE to one "
                         "that can be written to") from error


def prepare(
    request: EnvironmentRequest, builds: Sequence[Build], say: Callable[[str], None] = lambda _: None,
    at_hand: Sequence[Build] = (),
) -> dict[str, ScratchEnvironment]:
    """Return an environment for each build, by label, all with the same versions.

    Offline, builds without a stored environment are left out.

    Args:
        request: The packages to install.
        builds: The builds to install them for.
        say: Callback for progress messages.
        at_hand: Further builds, one of which may choose the versions if it has more wheels; it too gets an environment.

    Raises:
        BuildError: An environment cannot be made.
    """
    if not request.offline:
        _refuse_unwritable(cache_dir())
        make_room()
        WheelStore(builds[0]).remove_old()
    first = chooser(request, builds, at_hand)
    others = sorted((build for build in builds if build != first), key=_chooses)
    there = _scratch(request, first, None, say)
    chosen = replace(versions_in(there.folder).without(request.local_names), unknown=frozenset(
        name for name, problem in there.missing.items()
        if problem.kind is InstallProblemKind.UNKNOWN_NAME)) if there else ChosenVersions()
    rest = at_once(lambda build: _scratch(request, build, chosen, say), others, MOST_INSTALLERS)
    made = zip([first, *others], [there, *rest], strict=True)
    # The first build chose the versions for all.
    newer = there.newer if there else {}
    return {build.label: replace(scratch, newer=newer) for build, scratch in made if scratch}


def chooser(request: EnvironmentRequest, builds: Sequence[Build], at_hand: Sequence[Build]) -> Build:
    """Return the build that chooses the versions: the newest release with a GIL, also from `at_hand` if necessary."""
    best = min(builds, key=_chooses)
    pinned = all(map(has_exact_version, request.requirements))   # they leave little to choose
    return best if pinned or request.offline or chooses_well(best) else min([best, *at_hand], key=_chooses)


def chooses_well(build: Build) -> bool:
    """Return True if nearly every package has a wheel for the build, so that a resolver need not go back in time."""
    return not build.free_threaded and is_released(build.version)


def newest_versions(names: Sequence[str], builds: Sequence[Build]) -> dict[str, str]:
    """Return the newest version of each distribution that has a wheel for the build that chooses versions.

    Nothing is installed.  The result is empty with uv, or if any distribution has no wheel.
    """
    build = min(builds, key=_chooses)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        pip = None if uv_command() else pip_of(build, Path(name, "env"))
        return {} if pip is None or make_environment(pip, build) else pip.newest(names, Path(name, "report.json"))


def _chooses(build: Build) -> tuple[object, ...]:
    """Return the sort key of a build: the best one to choose versions comes first."""
    return (build.free_threaded, not is_released(build.version), [-int(part) for part in version_key(build.version)])


def _scratch(request: EnvironmentRequest, build: Build, chosen: ChosenVersions | None,
             say: Callable[[str], None]) -> ScratchEnvironment | None:
    folder = _folder(request, build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    hold(folder)
    if (ready := _ready(folder, build, request, chosen)) or request.offline:
        return ready
    with locked(_lock(folder), lambda: say(f"{build.label}: waiting for its environment")):
        if ready := _ready(folder, build, request, chosen):
            return ready
        files = [Path(each.path).name for each in request.local.get(build.label, ())]
        todo = few([*files, *_for_it(request.requirements, build)], MOST_REQUIREMENTS)
        say(f"{build.label}: {f'install {todo}' if todo else 'make an environment without packages'}")
        shutil.rmtree(folder, ignore_errors=True)
        missing = fill(folder, build, request.requirements, chosen, sdists=request.sdists)
        missing |= install_files(folder, request.local.get(build.label, ()))
        made = _loaded(folder, build, missing, {})
        if chosen is None and not request.sdists:
            made = replace(made, newer=old_versions(made.python, request.requirements, made.distributions))
        _write_stamp(made, build, request, chosen)
        return made


def _folder(request: EnvironmentRequest, build: Build) -> Path:
    # By content: a rebuilt wheel has the same name and version.
    files = [[each.name, each.sha256] for each in request.local.get(build.label, ())]
    wanted = json.dumps([sorted(request.requirements), request.sdists, build.base_executable,
                         *([files] if files else []), *sorted(local_contents(request.requirements).items())])
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    return cache_dir() / "scratch" / f"{build.version}{'t' if build.free_threaded else ''}-{digest}"


def _lock(folder: Path) -> Path:
    # Not with_suffix: the name "3.14.7-0123" contains dots.
    return folder.with_name(f"{folder.name}.lock")


def _ready(folder: Path, build: Build, request: EnvironmentRequest,
           chosen: ChosenVersions | None) -> ScratchEnvironment | None:
    try:
        stamp = json.loads((folder / STAMP).read_text())
        missing = {str(name): from_plain(InstallProblem, each) for name, each in stamp["missing"].items()}
        newer = {str(name): str(version) for name, version in stamp["newer"].items()}
        late = not request.offline and float(stamp["made"]) < time.time() - FRESH_SECONDS
        # The environment that chooses versions was made again meanwhile and has others now.
        other = not request.offline and chosen is not None and stamp["pins"] != list(chosen.pins)
        if stamp["base"] != identity(build) or late or other or not os.access(python_of(folder), os.X_OK):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None   # missing, damaged or from another version of gilscope: make it again
    return _loaded(folder, build, missing, newer)


def _loaded(
    folder: Path, build: Build, missing: dict[str, InstallProblem], newer: dict[str, str],
) -> ScratchEnvironment:
    return ScratchEnvironment(folder=folder, distributions=installed(site_folders(folder), build), missing=missing,
                              newer=newer)


def _write_stamp(made: ScratchEnvironment, build: Build, request: EnvironmentRequest,
                 chosen: ChosenVersions | None) -> None:
    stamp = {"base": identity(build), "made": time.time(), "newer": made.newer,
             "missing": {name: to_plain(problem) for name, problem in made.missing.items()},
             "request": to_plain(request), "pins": chosen.pins if chosen else (), "bytes": size_of(made.folder)}
    fresh = made.folder / f"{STAMP}.new"
    fresh.write_text(json.dumps(stamp, indent=1))
    fresh.replace(made.folder / STAMP)


def _for_it(requirements: Sequence[str], build: Build) -> list[str]:
    """Return the requirements that apply to a build, without markers and duplicates."""
    here = marker_environment(build)
    wanted = [text for text in requirements if applies(text.partition(";")[2].strip(), here)]
    return list(dict.fromkeys(text.partition(";")[0].strip() for text in wanted))


def old_versions(python: Path, requirements: Sequence[str], found: Iterable[Distribution]) -> dict[str, str]:
    """Return the pure Python distributions that are older than the newest release, with that release.

    A resolver goes back to old versions if newer ones have no wheel, often to one from before there was C code.

    Args:
        python: The environment's interpreter; without pip the result is empty.
        requirements: The user's requirements; pinned ones are skipped.
        found: The installed distributions.
    """
    free = dict(_unpinned(requirements))
    asked = [each for each in found if each.pure and each.name in free]
    told = at_once(lambda each: _newer(python, each, free[each.name]), asked, MOST_QUERIES)
    return {each.name: newest for each, newest in zip(asked, told, strict=True) if newest}


def _newer(python: Path, found: Distribution, allowed: SpecifierSet) -> str:
    """Return the newest version if it has no wheel and `found` is the newest version with one; else ""."""
    newest = newest_of(_index_versions(python, found.name), allowed)
    if not newest or not _older(found.version, newest):
        return ""
    # Otherwise another requirement excludes newer versions, or the index no longer answers.
    with_wheel = newest_of(_index_versions(python, found.name, "--only-binary", ":all:"), allowed)
    return newest if with_wheel and not _older(found.version, with_wheel) else ""


def newest_of(answer: str, allowed: SpecifierSet) -> str:
    """Return the newest allowed release in the output of `pip index versions`; "" if there is none."""
    versions = map(Version, available_versions(answer))
    return str(max((each for each in versions if each in allowed), default=""))


def _unpinned(requirements: Iterable[str]) -> Iterable[tuple[str, SpecifierSet]]:
    """Yield name and specifier of each requirement that does not pin its version."""
    for text in requirements:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue   # a path
        if not wanted.url and not any(each.operator in {"==", "==="} for each in wanted.specifier):
            yield canonicalize_name(wanted.name), wanted.specifier


def _older(version: str, newest: str) -> bool:
    try:
        return Version(version) < Version(newest)
    except InvalidVersion:   # a version from before PEP 440
        return True


def _index_versions(python: Path, name: str, *options: str) -> str:
    command = [str(python), "-I", "-m", "pip", "index", "versions", "--disable-pip-version-check", "--no-input", name,
               *options]
    try:
        return run(command, timeout=QUERY_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""   # The index answered the installer before, so this only leaves out a warning.
