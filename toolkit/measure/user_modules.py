"""Find a user's modules in the file system: names, advice after a failed import, a hash.  Imports none of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.local_projects import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def dotted(file: Path) -> tuple[str, Path]:
    """Return the dotted name of the module in `file`, and the folder that has to be on the import path.

    A folder with an `__init__.py` is a package, and so are its parents, up to the first folder without one.
    """
    folder = file if file.is_dir() else file.parent
    names = [] if file.is_dir() or file.name == "__init__.py" else [file.stem]
    while (folder / "__init__.py").is_file():
        names.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(names)), folder


def full_name_advice(module: str, paths: Sequence[Path]) -> str | None:
    """Suggest the full name of `module` if its file is in a package that the name leaves out, or return None."""
    file = next(_files(module, paths), None)
    name, folder = dotted(file) if file else ("", Path())
    if not name or name == module:
        return None
    return f"{module} is a part of {name.partition('.')[0]}: name it {name}, with --path {short(folder)}"


def path_advice(module: str, paths: Sequence[Path]) -> str | None:
    """Suggest a --path for `module` if it is in a folder directly below one of `paths`, or return None.

    It may also be in the current folder, which --path replaces.
    """
    here = Path.cwd()
    if here not in paths and next(_files(module, [here]), None):
        return "it is in the current folder, which --path replaces: add --path ."
    inside = [below for path in paths for below in sorted(path.glob("*/")) if not below.name.startswith(".")]
    parent = next((folder for folder in inside if next(_files(module, [folder]), None)), None)
    return f"it is in {short(parent)}: add --path {short(parent)}" if parent else None


def code_sum(modules: Iterable[str], paths: Sequence[Path]) -> str:
    """Return a hash of the sources of those modules that are in `paths`; "" if none is.

    It does not cover the modules that they import, nor installed packages.
    """
    files = [file for module in sorted(set(modules)) if (file := next(_files(module, paths), None))]
    summed = hashlib.sha256()
    for file in files:
        summed.update(hashlib.sha256(file.read_bytes()).digest())
    return summed.hexdigest() if files else ""


def _files(module: str, folders: Iterable[Path]) -> Iterator[Path]:
    parts = module.split(".")
    for folder in folders:
        for file in (folder.joinpath(*parts, "__init__.py"), folder.joinpath(*parts).with_suffix(".py")):
            if file.is_file():
                yield file
