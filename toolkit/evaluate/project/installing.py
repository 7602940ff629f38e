"""Install a project itself for a build, as its users get it, from a copy: a build leaves files behind."""

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
from gilscope.toolkit.builds.packages.environment import installer
from gilscope.toolkit.builds.packages.installer import run_to_end, shortened
from gilscope.toolkit.escaping import cut
from gilscope.toolkit.evaluate.packages.install.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.build_output import last_lines, why_not_built

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.evaluate.project.discovery import Project

BUILD_SECONDS = 1800.0   # compilers take long; a user would wait, too
BUILT = "gilscope-built"   # in an environment: the project as it was built for it
# What other tools keep there, and what earlier builds made, for whatever Python: users get none of it.
_NOT_COPIED = (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache")
_MADE_BEFORE = re.compile(r".*\.(?:cpython-\d+t?-.*|abi3t?)\.so$")
_BUILD_FOLDERS = re.compile(r"(?:lib|temp|bdist)\b.*|cp\d+.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How installing a project itself went."""

    failure: str = ""     # why it was not installed, in one line
    said: str = ""        # all that was printed
    output: str = ""      # the end of what the build said


def install_project(project: Project, environment: Path, target: Path) -> Installation:
    """Install the project itself, without what it needs, into the folder `target`, with its compiled code.

    It is built from a copy: a build leaves files behind.
    """
    if not project.installable:
        return Installation(failure="it has no [build-system] or [project]")
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        copy = Path(name, "project")
        try:
            copy_project(project.root, copy)
        except (OSError, shutil.Error) as error:
            return Installation(failure=f"cannot copy it: {cut(str(error), 200)}")
        command = [word for word in installer(environment) if word != "--quiet"]
        ended = run_to_end([*command, "--verbose", "--no-deps", "--target", target, copy],
                           {"GIT_OPTIONAL_LOCKS": "0"}, seconds=BUILD_SECONDS)
    if isinstance(ended, str):
        return Installation(failure=ended)
    said = f"{ended.stdout}\n{ended.stderr}".replace(str(copy), ".")
    if not ended.returncode:
        return Installation(said=said, output=last_lines(said))
    why = why_not_built(said)
    return Installation(failure=why or shortened(ended.stderr), said=said, output=last_lines(said))


def keep_built(environment: Path, target: Path, stamp: str, done: Installation) -> None:
    """Keep what was installed into `target` in the environment's folder, with which it goes; one project's at most.

    Args:
        environment: That it was built for.
        target: Where it lies; what runs it may write there, so this is a copy.
        stamp: A sum of all that it was made of.
        done: How that went.
    """
    kept = environment / BUILT
    with (contextlib.suppress(OSError),
          tempfile.TemporaryDirectory(prefix=BUILT, dir=environment, ignore_cleanup_errors=True) as name):
        fresh = Path(name, "fresh")
        shutil.copytree(target, fresh / "target", symlinks=True)
        (fresh / "stamp.json").write_text(json.dumps({"stamp": stamp, "said": done.said, "output": done.output}))
        (kept / "stamp.json").unlink(missing_ok=True)   # first: whoever copies it sees that it went
        shutil.rmtree(kept, ignore_errors=True)
        fresh.rename(kept)


def built_before(environment: Path, target: Path, stamp: str) -> Installation | None:
    """Put what was kept for `stamp` less than a day ago into `target`; None: there is nothing."""
    kept = environment / BUILT
    try:
        path = kept / "stamp.json"
        told = parse_json(read_text(path, RESULTS))
        made = path.stat()
        if told["stamp"] != stamp or made.st_mtime < time.time() - FRESH_SECONDS:
            return None
        done = Installation(said=str(told["said"]), output=str(told["output"]))
        shutil.copytree(kept / "target", target, symlinks=True)
        whole = path.stat().st_ino == made.st_ino   # else another call's took its place meanwhile
    except (OSError, ValueError, KeyError, TypeError):   # none, damaged, or going just now
        whole = False
    if not whole:
        shutil.rmtree(target, ignore_errors=True)
        return None
    return done


def copy_project(root: Path, copy: Path) -> None:
    """Copy a project's own files into the folder `copy`; its history is linked, as versions are made from that.

    Raises:
        OSError, shutil.Error: it cannot be copied, or something is there.
    """
    shutil.copytree(root, copy, symlinks=True, ignore=_left_out(root))
    if (history := root / ".git").exists():
        (copy / ".git").symlink_to(history)


def _left_out(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Return what tells `shutil.copytree` which names in a folder of the project are no part of it."""
    usual = shutil.ignore_patterns(*_NOT_COPIED)

    def ignored(folder: str, names: list[str]) -> set[str]:
        found = set(usual(folder, names)) | {name for name in names if _MADE_BEFORE.fullmatch(name)}
        if Path(folder) == root / "build":
            found |= {name for name in names if _BUILD_FOLDERS.fullmatch(name)}
        if Path(folder) == root and "Cargo.toml" in names:
            found.add("target")
        return found

    return ignored
