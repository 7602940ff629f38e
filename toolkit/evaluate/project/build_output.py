"""What compilers and build backends said, in few words: why a module, or all of it, was not made."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from gilscope.toolkit.escaping import uncoloured

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT_LINES = 30           # of the end, for --json
MOST_TOLD = 300           # characters
_ERROR = re.compile(r"\b(?:fatal|error|Error|ERROR)\b\s*(?:\[\w+\])?:|CMake Error|\bnot found\b|No such file|"
                    r"Unknown compiler|failed with exit|\b\w+Error:|ImportError|command '.*' failed")
# What an installer says of the build that it has run: the build's own words stand before.
_INSTALLERS = re.compile(r"error: subprocess-exited-with-error|ERROR: Failed building wheel|"
                         r"error: metadata-generation-failed|error: failed-wheel-build|Failed to build installable")
_BOX = re.compile(r"^ *(?:╰─>|│|note:|hint:|\u00d7).*$|^ *\[(?:\d+ lines of output|end of output)\]$|^ *$")
_LIBRARIES = re.compile(r"/[^\s'\"]*/site-packages/")   # those of the build lie in another folder each time
_BUILDING = re.compile(r"building '([\w.]+)' extension")


def build_lines(said: str) -> list[str]:
    """Return what the build itself printed, of all that an installer did."""
    lines = [line.rstrip() for line in uncoloured(said).splitlines()]
    end = next((number for number, line in enumerate(lines) if _INSTALLERS.search(line)), len(lines))
    own = [line for line in lines[:end] if not _BOX.match(line)]
    if any(_ERROR.search(line) for line in own):
        return own
    # A quiet installer shows the build in a box behind its own error.
    shown = [line for line in lines if not _BOX.match(line)]
    return [line for line in shown if not _INSTALLERS.search(line)] or shown


def why_not_built(said: str) -> str:
    """Return in one line why a build failed, by all that its installer printed; "" when it said nothing."""
    lines = build_lines(said)
    return _short(_telling(lines) or lines[-2:])


def told_of(name: str, said: str) -> str:
    """Return in one line why the module `name` was not made by a build that went on; "" when it was not tried."""
    lines = build_lines(said)
    last = name.rpartition(".")[2]
    starts = [(number, match[1]) for number, line in enumerate(lines) if (match := _BUILDING.search(line))]
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    for (number, built), end in zip(starts, ends, strict=False):   # none begins where nothing is built
        if built.rpartition(".")[2] == last and (told := _telling(lines[number:end])):
            return _short(told)
    return _short([line for line in _telling(lines) if last in line])


def last_lines(said: str) -> str:
    """Return the end of what a build printed."""
    return "\n".join(build_lines(said)[-KEPT_LINES:])


def _telling(lines: Iterable[str]) -> list[str]:
    """Return the first and the last line that name an error: the cause, and what became of it."""
    found = list(dict.fromkeys(line.strip() for line in lines if _ERROR.search(line)))
    return found if len(found) < 3 else [found[0], found[-1]]  # noqa: PLR2004 - the first and the last


def _short(lines: Iterable[str]) -> str:
    joined = re.sub(r":+; ", "; ", "; ".join(_LIBRARIES.sub("site-packages/", line.strip()) for line in lines))
    return textwrap.shorten(joined, MOST_TOLD, placeholder=" ...")
