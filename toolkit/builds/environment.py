"""Make an environment on demand with the packages that a build needs.  Environments of the user are left unchanged.

Environments contain no project code.  A measured process imports gilscope, and nothing else from its installation,
through `harness_path`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import gilscope
from gilscope.toolkit.builds.inspection import keeps_environment
from gilscope.toolkit.builds.local_projects import local_contents, local_path
from gilscope.toolkit.builds.missing_packages import distribution_of, find_missing_packages
from gilscope.toolkit.builds.package_installer import (
    WITHOUT_WHEEL,
    InstallProblem,
    InstallProblemKind,
    full_output,
    is_conflict,
    other_versions,
    problem_in,
    problem_in_verbose_output,
    run_installer,
    unavailable_packages,
    unmatched_requirement,
)
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.records import from_plain, to_plain
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Build

STAMP = "gilscope-environment.json"   # in an environment; written last: with it, an environment is complete
PACKAGE = Path(gilscope.__path__[0]).resolve()   # a checkout's link folder, or the installed package
OWN_FOLDERS = tuple((PACKAGE / name).resolve() for name in ("toolkit", "workloads", "runners"))   # links in a checkout
# pyperf requires psutil, which has no wheels for several builds, but works without it.
WITHOUT_DEPENDENCIES = {"pyperf"}
# Compiling these takes minutes and needs libraries that many machines lack, so only wheels are installed.
WHEELS_ONLY = {"numpy", "gevent", "matplotlib"}
# A source distribution may be built if it needs no compiler.
NO_COMPILERS = {"CC": "false", "CXX": "false", "CARGO": "false", "RUSTC": "false"}
RETRY_SECONDS = 3600.0    # a wheel may be published later, but a retry at every start would cost seconds


@dataclass(slots=True, kw_only=True)
class EnvironmentStamp:
    """The record in an environment of its interpreter, the installed requirements, and the failed ones."""

    base: str                       # identity of the interpreter
    installed: list[str] = field(default_factory=list)           # requirement strings
    failed: dict[str, tuple[float, InstallProblem]] = field(default_factory=dict)   # when and why, by requirement
    settings: str = ""              # of the installer when they failed: others may have them installed
    contents: dict[str, str] = field(default_factory=dict)   # digest of the files, by requirement that names a path

    def lacking(self, requirements: Sequence[str], contents: Mapping[str, str]) -> list[str]:
        """Return the requirements that are not installed, or whose files have other contents now."""
        return [text for text in requirements
                if text not in self.installed or contents.get(text) != self.contents.get(text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment of a build: its Python, and the requirements that it lacks."""

    python: Path
    missing: dict[str, InstallProblem] = field(default_factory=dict)   # by requirement


def build_environment(
    build: Build, packages: Sequence[str], optional: Sequence[str] = (), *, user: Sequence[str] = (), purpose: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> Environment:
    """Return an environment of `build` with `packages` and as many of the `optional` packages as can be installed.

    Each set of `user` requirements gets an environment of its own, so that earlier requests cannot affect its versions.
    If the build is itself an environment of the user, it is returned unchanged: its `missing` lists all requirements
    that it lacks, and only a lacking `user` requirement is an error.

    Args:
        build: The interpreter to make the environment for.
        packages: Requirements that must be installed.
        optional: Requirements that may fail; those that do are in `missing` of the returned environment.
        user: Requirements given by the user, which must be installed.
        purpose: One word, empty for measuring.  Each purpose has an environment of its own, so that packages installed
            for one do not affect another.
        on_progress: Called with a sentence before each step that takes a while.

    Raises:
        BuildError: The environment cannot be made, or a required package cannot be installed.
    """
    packages = [*packages, *user]
    requirements = list(dict.fromkeys([*packages, *optional]))
    if keeps_environment(build) and not purpose:
        lacking = find_missing_packages(build, requirements)
        own = Environment(python=Path(build.executable),
                          missing={text: InstallProblem(why) for text, why in lacking.items()})
        return _checked(own, build, user)
    folder = _folder(build, user, purpose)
    say = on_progress or (lambda _: None)
    if ready := _ready(folder, build, requirements):
        return _checked(ready, build, packages)
    try:
        # Not with_suffix: in "3.14.7-0123" it would replace everything after the last dot.
        lock = folder.with_name(f"{folder.name}.lock")
        with locked(lock, lambda: say(f"{build.label}: waiting for its environment")):
            environment = _ready(folder, build, requirements) or _install(folder, build, requirements, say)
    except OSError as error:
        raise BuildError(
            f"cannot make the environment of {build.label} in {folder}: {error}; set GILSCOPE_CACHE to a folder "
            "that can be written") from error
    return _checked(environment, build, packages)


def harness_path() -> Path:
    """Return a folder for a measured process's PYTHONPATH that contains only the gilscope package.

    The package is a link to the installed one, so nothing else from its site-packages can be imported.
    """
    folder = cache_dir() / "harness" / hashlib.sha256(os.fsencode(PACKAGE)).hexdigest()[:12]
    if not _links(folder):
        _make_link(folder)
    return folder


def is_ours(file: str) -> bool:
    """Return True if `file` is a source file of gilscope, through any links."""
    place = Path(file).resolve()
    return any(place.is_relative_to(folder) for folder in (PACKAGE, *OWN_FOLDERS))


def _links(folder: Path) -> bool:
    try:
        return (folder / PACKAGE.name).readlink() == PACKAGE
    except OSError:
        return False


def _make_link(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    (fresh / PACKAGE.name).symlink_to(PACKAGE)
    if folder.exists():  # damaged: move it away first, since rename replaces only an empty folder
        folder.rename(fresh / "damaged")
    try:
        fresh.rename(folder)
    except OSError:
        # Another process created it in the meantime; use that one if it is complete.
        if not _links(folder):
            raise
    shutil.rmtree((folder if not fresh.exists() else fresh) / "damaged", ignore_errors=True)
    shutil.rmtree(fresh, ignore_errors=True)


def _checked(environment: Environment, build: Build, packages: Sequence[str]) -> Environment:
    """Return `environment`; raise BuildError if it lacks one of `packages`."""
    for text in packages:
        if problem := environment.missing.get(text):
            raise BuildError(f"{build.label} needs {text}, which cannot be installed: {problem}")
    return environment


def _folder(build: Build, user: Sequence[str], purpose: str) -> Path:
    digest = hashlib.sha256("\n".join([build.base_executable, *sorted(user)]).encode()).hexdigest()[:10]
    name = f"{build.version}{'t' if build.free_threaded else ''}-{digest}"
    return cache_dir() / "environments" / (f"{name}-{purpose}" if purpose else name)


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in `folder`."""
    return folder / "bin" / "python"


def _ready(folder: Path, build: Build, requirements: Sequence[str]) -> Environment | None:
    """Return the environment if `requirements` need no installation, without starting a process."""
    stamp = read_stamp(folder, build, python_of(folder))
    if stamp is None:
        return None
    retry_before = time.time() - RETRY_SECONDS
    failed = stamp.failed if stamp.settings == _installer_settings() else {}
    missing = {text: problem for text, (when, problem) in failed.items()
               if when > retry_before and text in requirements}
    if all(text in missing for text in stamp.lacking(requirements, local_contents(requirements))):
        return Environment(python=python_of(folder), missing=missing)
    return None


def _installer_settings() -> str:
    """Return a digest of what pip and uv are told by variables, such as the folders and indexes they look into."""
    told = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(("PIP_", "UV_")))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()   # an index's address may hold a password


def _install(folder: Path, build: Build, requirements: Sequence[str], say: Callable[[str], None]) -> Environment:
    stamp = read_stamp(folder, build, python_of(folder))
    if stamp is None:
        say(f"{build.label}: make an environment")
        shutil.rmtree(folder, ignore_errors=True)
        create(folder, build)
        stamp = EnvironmentStamp(base=identity(build))
    contents = local_contents(requirements)
    todo = stamp.lacking(requirements, contents)
    if todo:
        say(f"{build.label}: install {', '.join(todo)}")
    _uninstall_old(folder, stamp, todo)
    failed = _install_all(folder, todo)
    now = time.time()
    stamp.installed += [text for text in todo if text not in failed]
    stamp.contents |= {text: digest for text, digest in contents.items() if text in stamp.installed}
    # An unreachable index says nothing about the package, and a local project may be mended: the next start tries
    # again.
    stamp.failed = {text: (now, problem) for text, problem in failed.items()
                    if not problem.unreached and text not in contents}
    stamp.settings = _installer_settings()
    write_stamp(folder, stamp)
    return Environment(python=python_of(folder), missing=failed)


def _uninstall_old(folder: Path, stamp: EnvironmentStamp, todo: Sequence[str]) -> None:
    """Uninstall those of `todo` that are installed with other contents: an installer may keep an equal version."""
    old = [text for text in todo if text in stamp.installed]
    if not old:
        return
    stamp.installed = [text for text in stamp.installed if text not in old]
    write_stamp(folder, stamp)   # first: whoever comes after an interruption installs them
    names = [distribution_of(text) for text in old]
    uv = uv_command()
    words = [uv, "pip", "uninstall", "--quiet", "--no-config", "--python", python_of(folder)] if uv else [
        *_pip(folder), "uninstall", "--quiet", "--yes"]
    if problem := run_installer([*words, *names]):
        raise BuildError(f"cannot uninstall {', '.join(names)} from {folder}: {problem}")


def create(folder: Path, build: Build) -> None:
    """Create an empty environment of `build` in `folder`, with uv if it is available.

    Raises:
        BuildError: The environment cannot be created.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if uv := uv_command():
        problem = run_installer([uv, "venv", "--quiet", "--no-config", "--python", build.base_executable, folder])
    else:
        problem = run_installer([build.base_executable, "-I", "-m", "venv", folder])
        if problem and _host_pip():
            # The interpreter has no ensurepip: it was built without zlib, or the distribution removed it.  `installer`
            # then uses the pip of the Python that runs gilscope.
            problem = run_installer([build.base_executable, "-I", "-m", "venv", "--clear", "--without-pip", folder])
    if problem:
        raise BuildError(f"cannot make an environment for {build.label}:\n{problem}")


def _install_all(folder: Path, todo: Sequence[str]) -> dict[str, InstallProblem]:
    """Install the requirements together, or one by one if that fails; return the problem of each that failed."""
    alone = [text for text in todo if distribution_of(text) in WITHOUT_DEPENDENCIES]
    together = [text for text in todo if text not in alone]
    reason = _install_wheels(folder, together) if together else ""
    if reason and (problem := problem_in(reason)).unreached:   # each further attempt would wait for its own timeouts
        return dict.fromkeys(todo, problem)
    todo = [*alone, *(together if reason else ())]
    failed = {text: why for text in todo if (why := _install_one(folder, text))}
    if reason and not failed and (reason := _install_wheels(folder, together)):
        last = problem_in(reason)
        return dict.fromkeys(together, replace(last, reason=f"not together with the others: {last.reason}"))
    return failed


def _install_one(folder: Path, text: str) -> InstallProblem | None:
    options = ["--no-deps"] if distribution_of(text) in WITHOUT_DEPENDENCIES else []
    if uv_command() and local_path(text):
        options += ["--refresh-package", distribution_of(text)]   # uv keeps what it built until pyproject.toml changes
    reason = _install_wheels(folder, [*options, text])
    if not reason:
        return None
    without_compilers = [*installer(folder), *options, text]
    if distribution_of(text) not in WHEELS_ONLY and not run_installer(without_compilers, NO_COMPILERS):
        return None
    return _problem_with(folder, text, reason)


def _problem_with(folder: Path, text: str, reason: str) -> InstallProblem:
    """Return the problem with `text`; run pip again with more output if `reason` has several possible causes."""
    problem, unmatched = problem_in(reason), unmatched_requirement(reason)
    if is_conflict(reason) and not uv_command():
        # pip tried every version of the package, and each needs a dependency without a wheel.
        output = full_output([*installer(folder, quiet=False), "--dry-run", "--only-binary", ":all:", text])
        packages = unavailable_packages(output)
        return _needs(", ".join(packages), WITHOUT_WHEEL) if packages else problem
    if problem.kind is not InstallProblemKind.NO_WHEEL or unmatched is None or uv_command():
        return problem
    cause = other_versions(reason)
    if cause is None:
        command = [*installer(folder, quiet=False), "-vv", "--dry-run", "--no-deps", "--only-binary", ":all:",
                   unmatched]
        cause = problem_in_verbose_output(full_output(command))
    return cause if distribution_of(unmatched) == distribution_of(text) else _needs(unmatched, cause)


def _needs(dependency: str, cause: InstallProblem) -> InstallProblem:
    return replace(cause, reason=f"it needs {dependency}: {cause.reason}")


def _install_wheels(folder: Path, arguments: Sequence[str]) -> str:
    return run_installer([*installer(folder), "--only-binary", ":all:", *arguments])


def installer(folder: Path, *, quiet: bool = True) -> list[str | Path]:
    """Return the command that installs into the environment in `folder`; the caller appends the requirements."""
    install = ["install", *["--quiet"] * quiet]
    if uv := uv_command():
        return [uv, "pip", *install, "--no-config", "--python", python_of(folder)]
    return [*_pip(folder), *install, "--disable-pip-version-check", "--no-input"]


def _pip(folder: Path) -> list[str | Path]:
    # Prefer the environment's own pip, which supports its Python; ours may be too old for it.  `fetch_wheels` puts it
    # there without its script.
    if any(folder.glob("lib/python3*/site-packages/pip/__main__.py")):
        return [python_of(folder), "-I", "-m", "pip"]
    return [sys.executable, "-I", "-m", "pip", "--python", python_of(folder)]


def _host_pip() -> bool:
    # `pip --python` came with pip 22.3; every CPython that can run us bundles a later one.
    return importlib.util.find_spec("pip") is not None


def identity(build: Build) -> str:
    """Return a key that changes when the interpreter's file is replaced."""
    status = Path(build.base_executable).stat()
    return f"{build.base_executable}|{status.st_mtime_ns}|{status.st_size}"


def read_stamp(folder: Path, build: Build, python: Path) -> EnvironmentStamp | None:
    """Return the stamp of a complete environment of this interpreter, or None if there is no such environment."""
    try:
        stamp = from_plain(EnvironmentStamp, json.loads((folder / STAMP).read_text()))
        return stamp if stamp.base == identity(build) and os.access(python, os.X_OK) else None
    except (OSError, ValueError):
        return None


def write_stamp(folder: Path, stamp: EnvironmentStamp) -> None:
    """Write `stamp` in one step: a half-written one would cause the environment to be made again."""
    fresh = folder / f"{STAMP}.new"
    fresh.write_text(json.dumps(to_plain(stamp), indent=1))
    fresh.replace(folder / STAMP)
