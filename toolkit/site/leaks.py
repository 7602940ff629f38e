"""What of a site would tell of a person or a machine: every file of it is looked through before it is put in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gilscope.toolkit.redaction import Leak, Private

PAGES = frozenset({".html", ".svg"})   # the others are data
OURS = "assets"                        # the folder with styles and scripts


def site_leaks(folder: Path, private: Private) -> Iterator[Leak]:
    """Yield what is private in the files of a site, each with its file."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        # The one PNG has words of the first page alone.
        if path.is_file() and name.parts[0] != OURS and path.suffix != ".png":
            text = path.read_text(encoding="utf-8", errors="replace")
            for leak in private.page_leaks(text) if path.suffix in PAGES else private.leaks(text):
                yield replace(leak, where=f"{name}: {leak.where}")
