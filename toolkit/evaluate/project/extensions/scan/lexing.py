"""Sources without their comments and strings, each line where it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import Match, Pattern

# The first that fits at a place is taken; what is none of these is code.
_C = re.compile(r"""
    //(?:[^\\\n]|\\\n|\\.)* | /\*.*?(?:\*/|\Z)
  | \b(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"
  | "(?:[^"\\\n]|\\\n|\\.)*" | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'""", re.VERBOSE | re.DOTALL)
_RUST = re.compile(r"""
    //[^\n]* | /\*.*?(?:\*/|\Z)
  | \bb?c?r(?P<mark>\#{0,8})"(?:.*?)"(?P=mark)
  | (?:\b[bc])?"(?:[^"\\]|\\.)*" | '(?:[^'\\\n]|\\[^\n]{1,10}?)'""", re.VERBOSE | re.DOTALL)
_PYTHON = re.compile(r"""
    \#[^\n]*
  | (?P<mark>\"\"\"|''').*?(?:(?<!\\)(?P=mark)|\Z)
  | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'""", re.VERBOSE | re.DOTALL)

_JUDGED = re.compile(r"\brace: ok\s+\w")


def code_of_c(text: str) -> str:
    """Return C or C++ without comments and strings; `""` stands for a string."""
    return _blank(_C, text)


def code_of_rust(text: str) -> str:
    """Return Rust without comments and strings, likewise."""
    return _blank(_RUST, text)


def code_of_python(text: str) -> str:
    """Return Python or Cython without comments and strings, likewise."""
    return _blank(_PYTHON, text)


def line_of(text: str, place: int) -> int:
    """Return the number of the line that holds a place in a text."""
    return text.count("\n", 0, place) + 1


def judged_lines(text: str) -> set[int]:
    """Return the numbers of the lines of which a comment says why what they do may be, as in Python."""
    return {number for number, line in enumerate(text.splitlines(), 1) if _JUDGED.search(line)}


def without_preprocessor(code: str) -> str:
    """Return C's code without the lines that its preprocessor reads; a macro's body is no code of its own."""
    return re.sub(r"^[ \t]*#(?:[^\\\n]|\\\n|\\.)*", lambda match: "\n" * match[0].count("\n"), code,
                  flags=re.MULTILINE | re.DOTALL)


def _blank(pattern: Pattern[str], text: str) -> str:
    def instead(match: Match[str]) -> str:
        lines = "\n" * match[0].count("\n")
        return lines or " " if match[0].startswith(("/", "#")) else f'""{lines}'

    return pattern.sub(instead, text)
