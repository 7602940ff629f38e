"""Find and read the files of a project that its build may use; helpers shared by the configuration formats."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_bytes
from gilscope.toolkit.evaluate.project.extensions import c_source
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MOST_FILES = 50_000
MOST_BYTES = 4 * 2**20     # a longer file is generated
# Folders with build results, with other projects, or with files that no wheel contains.
LEFT_OUT = frozenset({
    "build", "dist", "target", "venv", "env", "node_modules", "site-packages", "__pycache__", "subprojects",
    "_skbuild", "docs", "doc", "examples", "example", "test", "tests", "testing", "bench", "benchmark", "benchmarks",
    "fuzz"})
_VENDORED_FILES = {"pythoncapi_compat.h", "pythoncapi-compat.h", "npy_2_compat.h"}
_VENDOR_FOLDERS = {"vendor", "vendored", "third_party", "thirdparty", "third-party", "3rdparty", "extern", "external",
                   "deps", "bundled"}


class ProjectFiles:
    """The files below a project's root; the tree is walked once."""

    def __init__(self, root: Path) -> None:
        """Collect the file names; links are not followed."""
        self.root = root
        self._all = tuple(self._walk())

    def named(self, *names: str) -> list[str]:
        """Return the files that have one of these names, outermost first."""
        return [file for file in self._all if file.rpartition("/")[2] in names]

    def ending(self, *suffixes: str) -> list[str]:
        """Return the files with one of these suffixes, outermost first."""
        return [file for file in self._all if file.endswith(suffixes)]

    def text(self, file: str) -> str | None:
        """Return the text of a file; None if it is missing, too long, or unreadable."""
        path = self.root / file
        try:
            return read_bytes(path, MOST_BYTES).decode(errors="replace")
        except OSError:
            return None

    def there(self, file: str, beside: str = "") -> str | None:
        """Return the path, relative to the root, of a file that a configuration names; None if there is no such file.

        Args:
            file: The name, relative to the folder of `beside` or to the root.
            beside: The configuration file.
        """
        for folder in dict.fromkeys((beside.rpartition("/")[0], "")):
            path = os.path.normpath(file if file.startswith("/") or not folder else f"{folder}/{file}")
            if not path.startswith(("..", "/")) and (self.root / path).is_file():
                return path
        return None

    def _walk(self) -> Iterator[str]:
        count = 0
        waiting = [""]
        for folder in waiting:   # the loop appends to the list it reads, which makes the walk breadth-first
            try:
                with os.scandir(self.root / folder) as found:
                    entries = sorted(found, key=lambda each: each.name)
            except OSError:
                continue
            files = [f"{folder}{each.name}" for each in entries if each.is_file(follow_symlinks=False)]
            waiting += [f"{folder}{each.name}/" for each in entries if each.is_dir(follow_symlinks=False)
                        and each.name not in LEFT_OUT and not each.name.startswith(".")]
            yield from files
            count += len(files)
            if count > MOST_FILES:
                return


def arguments(text: str, opening: int) -> str:
    """Return the text between the parenthesis at `opening` and the matching one, or to the end if none matches."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return text[opening + 1:place]
    return text[opening + 1:]


def binding_of(files: ProjectFiles, sources: Iterable[str]) -> Binding:
    """Return the binding of sources, by their suffixes and by the first one that uses more than the C API."""
    names = tuple(sources)
    if any(name.endswith((".pyx", ".py")) for name in names):
        return Binding.CYTHON
    if any(name.endswith(".rs") for name in names):
        return Binding.PYO3
    shown = (c_source.binding_of(files.text(name) or "") for name in names)
    usual = Binding.C_API if names else Binding.UNKNOWN
    return next((binding for binding in shown if binding is not Binding.C_API), usual)


def is_vendored(file: str) -> bool:
    """Return True for a copy of another project's file, by its name or its folder."""
    *folders, name = file.split("/")
    return name in _VENDORED_FILES or any(each.lower().strip("_") in _VENDOR_FOLDERS for each in folders)
