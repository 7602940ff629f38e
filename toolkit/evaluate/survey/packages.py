"""Read the list of packages for a survey: one requirement on each line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from pathlib import Path

MOST_TOLD = 5   # damaged lines to list in a message


def listed_packages(path: Path) -> tuple[str, ...]:
    """Return the requirements in a file, in its order and without duplicates; "#" begins a comment.

    Raises:
        BadFileError: The file cannot be read, is empty, or a line is not a requirement.
    """
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadFileError(f"{path} cannot be read: {why}") from error
    found: dict[Requirement, None] = {}   # Requirement("six") and Requirement("Six") are equal
    damaged = []
    for number, line in enumerate(lines, 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        try:
            found.setdefault(Requirement(text))
        except InvalidRequirement:
            damaged.append(f"line {number}: {text[:60]!r}")
    if damaged:
        raise BadFileError(f"{path} has lines that are no requirement, such as lxml or numpy>=2: "
                           f"{few(damaged, MOST_TOLD)}; mend them, or make them comments with #")
    if not found:
        raise BadFileError(f"{path} lists no package: write one on each line, such as lxml or numpy>=2")
    return tuple(map(str, found))
