"""Install the project itself for a build, as its users get it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.builds.environment import installer
from gilscope.toolkit.builds.package_installer import run_to_end, shortened
from gilscope.toolkit.escaping import cut
from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.build_output import last_lines, why_not_built
from gilscope.toolkit.evaluate.sections import Missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.evaluate.project.discovery import Project

BUILD_SECONDS = 1800.0   # large C++ projects compile for this long
BUILT = "gilscope-built"   # folder in an environment with the project as built for it
# Files of other tools and of earlier builds, which may be for another Python: not part of what users get.
_NOT_COPIED = (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache")
_MADE_BEFORE = re.compile(r".*\.(?:cpython-\d+t?-.*|abi3t?)\.so$")
_BUILD_FOLDERS = re.compile(r"(?:lib|temp|bdist)\b.*|cp\d+.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The result of installing the project itself."""

    failure: Missing | None = None   # why it was not installed, in one line; None if it was
    log: str = ""                    # all output
    output: str = ""                 # the last lines of the build's output


def install_project(project: Project, environment: Path, target: Path) -> Installation:
    """Install the project, without its requirements, into the folder `target`.

    It is built from a copy, because a build leaves files behind.
    """
    if not project.installable:
        return Installation(failure=Missing(reason="it has no [build-system] or [project]"))
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        copy = Path(name, "project")
        try:
            copy_project(project.root, copy)
        except (OSError, shutil.Error) as error:
            return Installation(failure=Missing(reason=f"cannot copy it: {cut(str(error), 200)}"))
        ended = run_to_end([*installer(environment, quiet=False), "--verbose", "--no-deps", "--target", target, copy],
                           {"GIT_OPTIONAL_LOCKS": "0"}, seconds=BUILD_SECONDS)
    if isinstance(ended, str):
        return Installation(failure=Missing(reason=ended))
    log = f"{ended.stdout}\n{ended.stderr}".replace(str(copy), ".")
    failure = Missing(reason=why_not_built(log) or shortened(ended.stderr)) if ended.returncode else None
    return Installation(failure=failure, log=log, output=last_lines(log))


def store_installation(environment: Path, target: Path, stamp: str, done: Installation) -> None:
    """Store a copy of the installed project in the folder of its environment, replacing any other.

    Args:
        environment: The environment that the project was built for.
        target: The folder with the installed project.  It is copied, because programs that run there may write to it.
        stamp: A hash of everything that the project was built from.
        done: The result of the installation.
    """
    stored = environment / BUILT
    with (contextlib.suppress(OSError),
          tempfile.TemporaryDirectory(prefix=BUILT, dir=environment, ignore_cleanup_errors=True) as name):
        fresh = Path(name, "fresh")
        shutil.copytree(target, fresh / "target", symlinks=True)
        (fresh / "stamp.json").write_text(json.dumps({"stamp": stamp, "said": done.log, "output": done.output}))
        # Remove the stamp first: a process that is copying the folder then notices that it is incomplete.
        (stored / "stamp.json").unlink(missing_ok=True)
        shutil.rmtree(stored, ignore_errors=True)
        fresh.rename(stored)


def restore_installation(environment: Path, target: Path, stamp: str) -> Installation | None:
    """Copy the installation stored for `stamp` less than a day ago to `target`; return None if there is none."""
    stored = environment / BUILT
    try:
        path = stored / "stamp.json"
        record = parse_json(read_text(path, RESULTS))
        made = path.stat()
        if record["stamp"] != stamp or made.st_mtime < time.time() - FRESH_SECONDS:
            return None
        done = Installation(log=str(record["said"]), output=str(record["output"]))
        shutil.copytree(stored / "target", target, symlinks=True)
        complete = path.stat().st_ino == made.st_ino   # otherwise another process replaced it during the copy
    except (OSError, ValueError, KeyError, TypeError):   # missing, damaged, or just being removed
        complete = False
    if not complete:
        shutil.rmtree(target, ignore_errors=True)
        return None
    return done


def copy_project(root: Path, copy: Path) -> None:
    """Copy a project's own files into the folder `copy`; link its history, which build tools derive versions from.

    Raises:
        OSError, shutil.Error: It cannot be copied, or `copy` exists.
    """
    shutil.copytree(root, copy, symlinks=True, ignore=_ignore_callback(root))
    if (history := root / ".git").exists():
        (copy / ".git").symlink_to(history)


def _ignore_callback(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Return the `ignore` callback of `shutil.copytree` for names that are not part of the project."""
    usual = shutil.ignore_patterns(*_NOT_COPIED)

    def ignored(folder: str, names: list[str]) -> set[str]:
        found = set(usual(folder, names)) | {name for name in names if _MADE_BEFORE.fullmatch(name)}
        if Path(folder) == root / "build":
            found |= {name for name in names if _BUILD_FOLDERS.fullmatch(name)}
        if Path(folder) == root and "Cargo.toml" in names:
            found.add("target")
        return found

    return ignored
