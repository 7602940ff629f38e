"""Whether the project under test is one of the installed packages, which are not checked."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.race.loading.hook import project_filter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def unwatched(root: Path, include: Sequence[str]) -> list[str]:
    """Return a sentence when tests imported the project of `root` from where it is installed: no race in it is seen.

    Args:
        root: The folder of its pyproject.toml.
        include: Globs of the modules that are checked wherever they are.
    """
    name = _name(root / "pyproject.toml")
    if name is None:
        return []
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return []
    files = {str(installed.locate_file(path)) for path in installed.files or () if path.suffix == ".py"}
    is_checked = project_filter(include=include)
    found = sorted(module for module, file in _imported() if file in files and not is_checked(module, file))
    if not found:
        return []
    top = found[0].partition(".")[0]
    text = (f"{top} was imported from where it is installed, so no race in it was looked for: "
            f"`pip install --editable .`, or check it there with --race-include={top!r} --race-include={top + '.*'!r}")
    return [text]


def _imported() -> list[tuple[str, str]]:
    modules = [(name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items())]
    return [(name, file) for name, file in modules if isinstance(file, str)]


def _name(path: Path) -> str | None:
    try:
        found = tomllib.loads(read_text(path)).get("project", {}).get("name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
