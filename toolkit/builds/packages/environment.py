"""The packages a build needs, in an environment of its own that is made on demand; tox environments stay as they are.

Environments hold no project code: `harness_path` is how a measured process gets ours and nothing else of the host's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import gilscope
from gilscope.toolkit.builds.inspection import keeps_environment
from gilscope.toolkit.builds.packages.installer import (
    NO_WHEEL,
    UNREACHED,
    conflicting,
    from_talk,
    lacking,
    run_installer,
    shortened,
    talk,
    unavailable,
    without_version,
)
from gilscope.toolkit.builds.packages.lacking import distribution_of, lacking_in
from gilscope.toolkit.builds.packages.stamp import Stamp, identity, read_stamp, write_stamp
from gilscope.toolkit.builds.user_dirs import cache_dir, locked, uv_command
from gilscope.toolkit.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.model import Build

PACKAGE = Path(gilscope.__path__[0]).resolve()   # where we are: a checkout's folder of that name, or the installed one
_FOLDERS = tuple((PACKAGE / name).resolve() for name in ("toolkit", "workloads", "runners"))   # links, in a checkout
# pyperf asks for psutil, which has no wheels for several builds; pyperf does without it.
WITHOUT_DEPENDENCIES = {"pyperf"}
# Compiling these takes minutes and depends on what the machine has: only their wheels count.
WHEELS_ONLY = {"numpy", "gevent", "matplotlib"}
# A source distribution may be built as long as it compiles nothing.
NO_COMPILERS = {"CC": "false", "CXX": "false", "CARGO": "false", "RUSTC": "false"}
RETRY_SECONDS = 3600.0    # a package without a wheel may get one; asking at every start would cost seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a build finds its packages."""

    python: Path
    missing: dict[str, str] = field(default_factory=dict)   # requirement -> why it is not there


def build_environment(
    build: Build, packages: Sequence[str], optional: Sequence[str] = (), *, user: Sequence[str] = (), purpose: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> Environment:
    """Return a python of `build` that has `packages` and, where they can be had, the `optional` ones.

    What the `user` requires has an environment of its own: versions asked for at another time must not be in it.
    An environment of the user's is returned as it is, with what it lacks as missing, required or not; only what the
    user named for it must be there.

    Args:
        build: For which interpreter.
        packages: Requirements that it must have.
        optional: Requirements that it can do without; those not to be had are `missing` from what is returned.
        user: Requirements of the user's, which it must have.
        purpose: Other than being measured, in a word: there is an environment of its own for each, so that what serves
            one purpose changes nothing for another.
        on_progress: Told each step that takes a while.

    Raises:
        BuildError: The environment cannot be made, or a package of `packages` not be installed.
    """
    packages = [*packages, *user]
    wanted = list(dict.fromkeys([*packages, *optional]))
    if keeps_environment(build) and not purpose:
        own = Environment(python=Path(build.executable), missing=lacking_in(build, wanted))
        return _checked(own, build, user)
    folder = _folder(build, user, purpose)
    say = on_progress or (lambda _: None)
    if found := _ready(folder, build, wanted):
        return _checked(found, build, packages)
    try:
        # Not with_suffix: what follows the last dot of "3.14.7-0123" is a part of the name.
        lock = folder.with_name(f"{folder.name}.lock")
        with locked(lock, lambda: say(f"{build.label}: waiting for its environment")):
            found = _ready(folder, build, wanted) or _install(folder, build, wanted, say)
    except OSError as error:
        raise BuildError(
            f"cannot make the environment of {build.label} in {folder}: {error}; set GILSCOPE_CACHE to a folder "
            "that can be written") from error
    return _checked(found, build, packages)


def harness_path() -> Path:
    """Return a folder that holds exactly our package, to be put on a measured process's PYTHONPATH.

    It is a link to where it is installed, so that nothing else of that place can be imported.
    """
    folder = cache_dir() / "harness" / hashlib.sha256(os.fsencode(PACKAGE)).hexdigest()[:12]
    if not _links(folder):
        _make_link(folder)
    return folder


def is_ours(file: str) -> bool:
    """Return whether `file` is a source of ours, by whatever links it was found."""
    place = Path(file).resolve()
    return any(place.is_relative_to(folder) for folder in (PACKAGE, *_FOLDERS))


def _links(folder: Path) -> bool:
    try:
        return (folder / PACKAGE.name).readlink() == PACKAGE
    except OSError:
        return False


def _make_link(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    (fresh / PACKAGE.name).symlink_to(PACKAGE)
    if folder.exists():  # damaged: out of the way first, a folder can only replace an empty one
        folder.rename(fresh / "damaged")
    try:
        fresh.rename(folder)
    except OSError:
        # Somebody else made it in between; theirs is as good if it is whole.
        if not _links(folder):
            raise
    shutil.rmtree((folder if not fresh.exists() else fresh) / "damaged", ignore_errors=True)
    shutil.rmtree(fresh, ignore_errors=True)


def _checked(found: Environment, build: Build, packages: Sequence[str]) -> Environment:
    for text in packages:
        if reason := found.missing.get(text):
            raise BuildError(f"{build.label} needs {text}, which cannot be installed: {reason}")
    return found


def _folder(build: Build, user: Sequence[str], purpose: str) -> Path:
    digest = hashlib.sha256("\n".join([build.base_executable, *sorted(user)]).encode()).hexdigest()[:10]
    name = f"{build.version}{'t' if build.free_threaded else ''}-{digest}"
    return cache_dir() / "environments" / (f"{name}-{purpose}" if purpose else name)


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in `folder`."""
    return folder / "bin" / "python"


def _ready(folder: Path, build: Build, wanted: Sequence[str]) -> Environment | None:
    """Return the environment when nothing has to be done for `wanted`, without starting a process."""
    stamp = read_stamp(folder, build, python_of(folder))
    if stamp is None:
        return None
    late = time.time() - RETRY_SECONDS
    missing = {text: why for text, (when, why) in stamp.failed.items() if when > late and text in wanted}
    if all(text in stamp.installed or text in missing for text in wanted):
        return Environment(python=python_of(folder), missing=missing)
    return None


def _install(folder: Path, build: Build, wanted: Sequence[str], say: Callable[[str], None]) -> Environment:
    stamp = read_stamp(folder, build, python_of(folder))
    if stamp is None:
        say(f"{build.label}: make an environment")
        shutil.rmtree(folder, ignore_errors=True)
        create(folder, build)
        stamp = Stamp(base=identity(build))
    todo = [text for text in wanted if text not in stamp.installed]
    if todo:
        say(f"{build.label}: install {', '.join(todo)}")
    failed = _install_all(folder, todo)
    now = time.time()
    stamp.installed += [text for text in todo if text not in failed]
    # What failed for want of an index is no news of the package: the next start asks again.
    stamp.failed = {text: (now, why) for text, why in failed.items() if UNREACHED not in why}
    write_stamp(folder, stamp)
    return Environment(python=python_of(folder), missing=failed)


def create(folder: Path, build: Build) -> None:
    """Make an empty environment of `build`, by uv where there is one.

    Raises:
        BuildError: It cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if uv := uv_command():
        problem = run_installer([uv, "venv", "--quiet", "--no-config", "--python", build.base_executable, folder])
    else:
        problem = run_installer([build.base_executable, "-I", "-m", "venv", folder])
        if problem and _host_pip():
            # No ensurepip: built without zlib, or cut off by the distribution.  Our own pip can stand in.
            problem = run_installer([build.base_executable, "-I", "-m", "venv", "--clear", "--without-pip", folder])
    if problem:
        raise BuildError(f"cannot make an environment for {build.label}:\n{problem}")


def _install_all(folder: Path, todo: Sequence[str]) -> dict[str, str]:
    """Install the requirements together; where that fails, one by one to learn which of them cannot be had."""
    alone = [text for text in todo if distribution_of(text) in WITHOUT_DEPENDENCIES]
    together = [text for text in todo if text not in alone]
    reason = _install_wheels(folder, together) if together else ""
    if reason and (short := shortened(reason)).startswith(UNREACHED):   # asking for each would take as long again, each
        return dict.fromkeys(todo, short)
    todo = [*alone, *(together if reason else ())]
    failed = {text: why for text in todo if (why := _install_one(folder, text))}
    if reason and not failed and (reason := _install_wheels(folder, together)):
        return dict.fromkeys(together, f"not together with the others: {shortened(reason)}")
    return failed


def _install_one(folder: Path, text: str) -> str:
    options = ["--no-deps"] if distribution_of(text) in WITHOUT_DEPENDENCIES else []
    reason = _install_wheels(folder, [*options, text])
    if not reason:
        return ""
    without_compilers = [*installer(folder), *options, text]
    if distribution_of(text) not in WHEELS_ONLY and not run_installer(without_compilers, NO_COMPILERS):
        return ""
    return _why(folder, text, reason)


def _why(folder: Path, text: str, reason: str) -> str:
    """Return in one line why `text` cannot be had; pip is asked once more where it says the same of several reasons."""
    short, missing = shortened(reason), lacking(reason)
    if conflicting(reason) and not uv_command():
        # Of all its versions, which differ in nothing that matters here, each needs something without a wheel.
        said = talk([*_talkative(folder), "--dry-run", "--only-binary", ":all:", text])
        return f"it needs {', '.join(named)}: {NO_WHEEL}" if (named := unavailable(said)) else short
    if short != NO_WHEEL or missing is None or uv_command():
        return short
    own = "" if distribution_of(missing) == distribution_of(text) else f"it needs {missing}: "
    if other := without_version(reason):
        return own + other
    command = [*_talkative(folder), "-vv", "--dry-run", "--no-deps", "--only-binary", ":all:", missing]
    return own + from_talk(talk(command))


def _talkative(folder: Path) -> list[str | Path]:
    return [word for word in installer(folder) if word != "--quiet"]


def _install_wheels(folder: Path, arguments: Sequence[str]) -> str:
    return run_installer([*installer(folder), "--only-binary", ":all:", *arguments])


def installer(folder: Path) -> list[str | Path]:
    """Return the command that installs into the environment in `folder`, without what to install."""
    if uv := uv_command():
        return [uv, "pip", "install", "--quiet", "--no-config", "--python", python_of(folder)]
    pip: list[str | Path] = [sys.executable, "-I", "-m", "pip", "--python", python_of(folder)]
    # The pip a Python comes with works with that Python; an older one may not.
    if python_of(folder).with_name("pip").exists():
        pip = [python_of(folder), "-I", "-m", "pip"]
    return [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-input"]


def _host_pip() -> bool:
    # `pip --python` came with pip 22.3; every CPython that can run us bundles a later one.
    return importlib.util.find_spec("pip") is not None
