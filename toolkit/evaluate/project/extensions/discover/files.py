"""The files of a project that may belong to its build; folders of other tools are left out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_FILES = 50_000
MOST_BYTES = 4 * 2**20     # of one file; what is longer was written by a program
# A build's own results, other projects, and what no wheel has.
LEFT_OUT = frozenset({
    "build", "dist", "target", "venv", "env", "node_modules", "site-packages", "__pycache__", "subprojects",
    "_skbuild", "docs", "doc", "examples", "example", "test", "tests", "testing", "benchmark", "benchmarks", "fuzz"})


class Files:
    """The files below a project's root, looked for once."""

    def __init__(self, root: Path) -> None:
        """Read the names; what a link leads to is not looked at."""
        self.root = root
        self._all = tuple(self._walk())

    def named(self, *names: str) -> list[str]:
        """Return the files that have one of these names, the outermost first."""
        return [file for file in self._all if file.rpartition("/")[2] in names]

    def ending(self, *suffixes: str) -> list[str]:
        """Return the files that end so, the outermost first."""
        return [file for file in self._all if file.endswith(suffixes)]

    def text(self, file: str) -> str | None:
        """Return what a file holds; None when it is not there, too long, or cannot be read."""
        path = self.root / file
        try:
            return read_bytes(path, MOST_BYTES).decode(errors="replace")
        except OSError:
            return None

    def there(self, file: str, beside: str = "") -> str | None:
        """Return a file that a configuration names, from the root on; None when there is none.

        Args:
            file: As it is named.
            beside: The configuration, whose folder the name may begin at.
        """
        for folder in dict.fromkeys((beside.rpartition("/")[0], "")):
            path = os.path.normpath(file if file.startswith("/") or not folder else f"{folder}/{file}")
            if not path.startswith(("..", "/")) and (self.root / path).is_file():
                return path
        return None

    def _walk(self) -> Iterator[str]:
        count = 0
        waiting = [""]
        for folder in waiting:   # it grows: the outermost first
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
