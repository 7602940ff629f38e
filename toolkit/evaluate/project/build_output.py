"""Summarize the output of compilers and build backends: why a module, or the whole build, failed."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from gilscope.toolkit.escaping import uncoloured
from gilscope.toolkit.evaluate.sections import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

LAST_LINES = 30           # number of lines in --json
MOST_CHARACTERS = 300     # of a reason
_ERROR = re.compile(r"\b(?:fatal|error|Error|ERROR)\b\s*(?:\[\w+\])?:|CMake Error|\bnot found\b|No such file|"
                    r"Unknown compiler|failed with exit|\b\w+Error:|ImportError|command '.*' failed")
# An installer's messages about a build that it ran; they come after the build's own output.
_INSTALLERS = re.compile(r"error: subprocess-exited-with-error|ERROR: Failed building wheel|"
                         r"error: metadata-generation-failed|error: failed-wheel-build|Failed to build installable")
_BOX = re.compile(r"^ *(?:╰─>|│|note:|hint:|\u00d7).*$|^ *\[(?:\d+ lines of output|end of output)\]$|^ *$")
_LIBRARIES = re.compile(r"/[^\s'\"]*/site-packages/")   # a build's environment has another path each time
LIBRARIES = "site-packages/"
_PLACE = re.compile(r"([^\s:]+\.\w+):(\d+)(?::\d+)?: ")   # as compilers name a place
_LIMITED_API = re.compile(r"limited.api|abi3", re.IGNORECASE)
_BUILDING = re.compile(r"building '([\w.]+)' extension")


def build_lines(output: str) -> list[str]:
    """Return the build's own lines in the output of an installer."""
    lines = [line.rstrip() for line in uncoloured(output).splitlines()]
    end = next((number for number, line in enumerate(lines) if _INSTALLERS.search(line)), len(lines))
    own = [line for line in lines[:end] if not _BOX.match(line)]
    if any(_ERROR.search(line) for line in own):
        return own
    # A quiet installer shows the build's output in a box after its own error.
    shown = [line for line in lines if not _BOX.match(line)]
    return [line for line in shown if not _INSTALLERS.search(line)] or shown


def why_not_built(output: str) -> str:
    """Return in one line why a build failed, from the output of the installer; "" if the output is empty."""
    lines = build_lines(output)
    return _short(_error_lines(lines) or lines[-2:])


def why_module_not_built(name: str, output: str) -> str:
    """Return in one line why a build that continued did not make the module `name`; "" if it did not try."""
    lines = build_lines(output)
    last = name.rpartition(".")[2]
    starts = [(number, match[1]) for number, line in enumerate(lines) if (match := _BUILDING.search(line))]
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    for (number, built), end in zip(starts, ends, strict=False):   # unequal if nothing was built
        if built.rpartition(".")[2] == last and (errors := _error_lines(lines[number:end])):
            return _short(errors)
    return _short([line for line in _error_lines(lines) if last in line])


def place_of_error(message: str) -> Place | None:
    """Return the place in the project at the start of a compiler's message; None if it names none."""
    match = _PLACE.match(message)
    inside = match is not None and not match[1].startswith(("/", LIBRARIES))
    return Place(file=match[1], line=int(match[2])) if match and inside else None


def names_limited_api(*texts: str) -> bool:
    """Return True if the output of a build, or a condition in its configuration, names the limited API."""
    return any(map(_LIMITED_API.search, texts))


def last_lines(output: str) -> str:
    """Return the last lines of a build's output."""
    return "\n".join(build_lines(output)[-LAST_LINES:])


def _error_lines(lines: Iterable[str]) -> list[str]:
    """Return the first and the last line that contain an error: the cause and the consequence."""
    found = list(dict.fromkeys(line.strip() for line in lines if _ERROR.search(line)))
    return found if len(found) < 3 else [found[0], found[-1]]  # the first and the last


def _short(lines: Iterable[str]) -> str:
    joined = re.sub(r":+; ", "; ", "; ".join(_LIBRARIES.sub(LIBRARIES, line.strip()) for line in lines))
    return textwrap.shorten(joined, MOST_CHARACTERS, placeholder=" ...")
