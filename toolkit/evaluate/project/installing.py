"""Install a project itself for a build, from a copy: a build leaves files behind."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.packages.environment import NO_COMPILERS, installer
from gilscope.toolkit.builds.packages.installer import run_installer, shortened
from gilscope.toolkit.foreign import cut

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.conventions import Project

_NOT_COPIED = (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache")


def install_project(project: Project, environment: Path, target: Path, *, compilers: bool = False) -> str | None:
    """Install the project itself, without what it needs, into the folder `target`; return why that cannot be done.

    It is built from a copy: a build leaves files behind.  None of its C code is compiled unless `compilers`.
    """
    if not project.installable:
        return "it has no [build-system] or [project]"
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as name:
        copy = Path(name, "project")
        try:
            shutil.copytree(project.root, copy, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        except (OSError, shutil.Error) as error:
            return f"cannot copy it: {cut(str(error), 200)}"
        reason = run_installer(
            [*installer(environment), "--no-deps", "--target", target, copy], {} if compilers else NO_COMPILERS
        )
    return shortened(reason) if reason else None
