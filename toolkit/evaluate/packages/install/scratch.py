"""Environments that hold the packages under test, one per build and request, made once and kept below the cache folder.

The versions are chosen once, on the newest released build with a GIL, as its wheels are the most complete; every other
build gets the same ones.  A resolver that is left alone goes back to versions from before there was a compiled half.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.builds.packages.environment import python_of
from gilscope.toolkit.builds.packages.stamp import identity
from gilscope.toolkit.builds.user_dirs import cache_dir, locked, uv_command
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.children.at_once import at_once
from gilscope.toolkit.evaluate.packages.distributions import installed, site_folders
from gilscope.toolkit.evaluate.packages.install.eviction import STAMP, hold, make_room, size_of
from gilscope.toolkit.evaluate.packages.install.fetch_wheels import Store, make, pip_of
from gilscope.toolkit.evaluate.packages.install.installing import Chosen, chosen_in, fill
from gilscope.toolkit.evaluate.packages.install.older_versions import went_back
from gilscope.toolkit.evaluate.requirements.wheel_for_build import applies, marker_environment
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.evaluate.packages.facts import Distribution
    from gilscope.toolkit.model import Build

AT_ONCE = 2                     # installers; each is busy with one core, the disk and the network
MOST_TOLD = 6                   # requirements that are named while they are installed
FRESH_SECONDS = 24 * 3600.0     # a new wheel may be out tomorrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to install."""

    requirements: tuple[str, ...]
    sdists: bool = False            # build from source what has no wheel
    offline: bool = False           # take what was made before, however old, and make nothing
    asked: tuple[str, ...] = ()     # names of what the user asks for; empty: all requirements, none is there for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """One build's environment with what could be installed."""

    folder: Path
    distributions: tuple[Distribution, ...]
    missing: dict[str, str] = field(default_factory=dict)   # distribution -> why it is not there
    newer: dict[str, str] = field(default_factory=dict)     # distribution -> the version that has no wheel

    @property
    def answers(self) -> Path:
        """Where the answers of its processes are kept; they go when it is made anew."""
        return self.folder / "gilscope-answers"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return python_of(self.folder)


def _refuse_unwritable(folder: Path) -> None:
    """Refuse a cache folder that cannot be made or written into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BuildError(f"cannot write into the cache folder {folder}: {error.strerror}; set GILSCOPE_CACHE to one "
                         "that can be written to") from error


def prepare(
    request: Request, builds: Sequence[Build], say: Callable[[str], None] = lambda _: None,
    at_hand: Sequence[Build] = (),
) -> dict[str, Scratch]:
    """Return an environment for each build, by its label, all with the same versions.

    A build without one is left out when the request is offline.

    Args:
        request: What to install.
        builds: For which.
        say: Is told about every step.
        at_hand: One of these chooses the versions when it is better at that; it gets an environment, too.

    Raises:
        BuildError: An environment cannot be made.
    """
    if not request.offline:
        _refuse_unwritable(cache_dir())
        make_room()
        Store(builds[0]).remove_old()
    first = chooser(request, builds, at_hand)
    others = sorted((build for build in builds if build != first), key=_chooses)
    there = _scratch(request, first, None, say)
    chosen = chosen_in(there.folder) if there else Chosen()
    rest = at_once(lambda build: _scratch(request, build, chosen, say), others, AT_ONCE)
    made = zip([first, *others], [there, *rest], strict=True)
    # All have the versions that the first one chose.
    newer = there.newer if there else {}
    return {build.label: replace(scratch, newer=newer) for build, scratch in made if scratch}


def chooser(request: Request, builds: Sequence[Build], at_hand: Sequence[Build]) -> Build:
    """Return the build that chooses the versions: the newest release with a GIL, of those at hand if need be."""
    best = min(builds, key=_chooses)
    pinned = all("==" in text for text in request.requirements)   # then there is little to choose
    return best if pinned or request.offline or chooses_well(best) else min([best, *at_hand], key=_chooses)


def chooses_well(build: Build) -> bool:
    """Return whether nearly everything has a wheel for the build, so that a resolver need not go back in time."""
    return not build.free_threaded and _released(build)


def newest_versions(names: Sequence[str], builds: Sequence[Build]) -> dict[str, str]:
    """Return the newest version of each distribution that has a wheel for the build that chooses, as far as known.

    Nothing is installed.  With uv, or where one of them has none, nothing is known.
    """
    build = min(builds, key=_chooses)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        pip = None if uv_command() else pip_of(build, Path(name, "env"))
        return {} if pip is None or make(pip, build) else pip.newest(names, Path(name, "report.json"))


def _chooses(build: Build) -> tuple[object, ...]:
    """Return what orders builds by how good their choice of versions is."""
    return (build.free_threaded, not _released(build), [-int(part) for part in version_key(build.version)])


def _released(build: Build) -> bool:
    return re.fullmatch(r"[\d.]+\+?", build.version) is not None   # 3.14.7+: after 3.14.7; 3.15.0rc1: before 3.15


def _scratch(request: Request, build: Build, chosen: Chosen | None, say: Callable[[str], None]) -> Scratch | None:
    folder = _folder(request, build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    hold(folder)
    if (ready := _ready(folder, build, request, chosen)) or request.offline:
        return ready
    with locked(_lock(folder), lambda: say(f"{build.label}: waiting for its environment")):
        if ready := _ready(folder, build, request, chosen):
            return ready
        say(f"{build.label}: install {few(_for_it(request.requirements, build), MOST_TOLD)}")
        shutil.rmtree(folder, ignore_errors=True)
        missing = fill(folder, build, request.requirements, chosen, sdists=request.sdists)
        made = _loaded(folder, build, missing, {})
        if chosen is None and not request.sdists:
            made = replace(made, newer=went_back(made.python, request.requirements, made.distributions))
        _write_stamp(made, build, request, chosen)
        return made


def _folder(request: Request, build: Build) -> Path:
    wanted = json.dumps([sorted(request.requirements), request.sdists, build.base_executable])
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    return cache_dir() / "scratch" / f"{build.version}{'t' if build.free_threaded else ''}-{digest}"


def _lock(folder: Path) -> Path:
    # Not with_suffix: what follows the last dot of "3.14.7-0123" is a part of the name.
    return folder.with_name(f"{folder.name}.lock")


def _ready(folder: Path, build: Build, request: Request, chosen: Chosen | None) -> Scratch | None:
    try:
        stamp = json.loads((folder / STAMP).read_text())
        missing, newer = ({str(name): str(told) for name, told in stamp[key].items()} for key in ("missing", "newer"))
        late = not request.offline and float(stamp["made"]) < time.time() - FRESH_SECONDS
        # The first environment was made anew in between, and has other versions now.
        other = not request.offline and chosen is not None and stamp["pins"] != list(chosen.pins)
        if stamp["base"] != identity(build) or late or other or not os.access(python_of(folder), os.X_OK):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None   # none yet, damaged or from another version: made again
    return _loaded(folder, build, missing, newer)


def _loaded(folder: Path, build: Build, missing: dict[str, str], newer: dict[str, str]) -> Scratch:
    return Scratch(folder=folder, distributions=installed(site_folders(folder), build), missing=missing, newer=newer)


def _write_stamp(made: Scratch, build: Build, request: Request, chosen: Chosen | None) -> None:
    stamp = {"base": identity(build), "made": time.time(), "missing": made.missing, "newer": made.newer,
             "request": asdict(request), "pins": chosen.pins if chosen else (), "bytes": size_of(made.folder)}
    fresh = made.folder / f"{STAMP}.new"
    fresh.write_text(json.dumps(stamp, indent=1))
    fresh.replace(made.folder / STAMP)


def _for_it(requirements: Sequence[str], build: Build) -> list[str]:
    """Return what of these a build gets, each once and without the marker that says so."""
    here = marker_environment(build)
    wanted = [text for text in requirements if applies(text.partition(";")[2].strip(), here)]
    return list(dict.fromkeys(text.partition(";")[0].strip() for text in wanted))
