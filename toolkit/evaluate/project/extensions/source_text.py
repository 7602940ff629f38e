"""Blank out comments and strings of source files, and find risky calls of the C API in what remains.

Source of the calls: "C API Extension Support for Free Threading" of CPython's documentation, 3.14 and 3.15: borrowed
references, container thread safety, memory allocation.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.own_extensions import Remark
from gilscope.toolkit.race.analysis.suppression_comments import MARK, suppression_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from re import Match, Pattern

    from gilscope.toolkit.evaluate.project.extensions.own_extensions import Concern

# Comments and strings; the first alternative that matches wins.
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
_COMMENTS = ("/", "#")   # beginnings of what these patterns match that are comments, not strings
NO_REASON = "The comment `race: ok` gives no reason: write why it is safe"


def code_of_c(text: str) -> str:
    """Return C or C++ without comments and strings; `""` stands for a string."""
    return _blank(_C, text)


def code_of_rust(text: str) -> str:
    """Return Rust without comments and strings; `""` stands for a string."""
    return _blank(_RUST, text)


def code_of_python(text: str) -> str:
    """Return Python or Cython without comments and strings; `""` stands for a string."""
    return _blank(_PYTHON, text)


def line_of(text: str, place: int) -> int:
    """Return the line number of an offset in a text."""
    return text.count("\n", 0, place) + 1


def suppressions_of_c(text: str) -> dict[int, str]:
    """Return the reasons of the `race: ok` comments of C or C++ by line."""
    return _suppressions(_C, text)


def suppressions_of_rust(text: str) -> dict[int, str]:
    """Return the reasons of the `race: ok` comments of Rust by line."""
    return _suppressions(_RUST, text)


def suppressions_of_python(text: str) -> dict[int, str]:
    """Return the reasons of the `race: ok` comments of Python or Cython by line."""
    return _suppressions(_PYTHON, text)


def without_accepted(remarks: Iterable[Remark], reasons: Mapping[int, str]) -> Iterator[Remark]:
    """Yield the remarks that no `race: ok` comment on their line accepts with a reason.

    A comment accepts what only the GIL is known to make safe, and a function that could not be read; one without a
    reason accepts nothing, which is said.

    Args:
        remarks: The remarks on one source.
        reasons: The reasons of its `race: ok` comments by line; "" for one without.
    """
    for each in remarks:
        reason = reasons.get(each.line) if each.unguarded or each.concern == "not read" else None
        if reason is None:
            yield each
        elif not reason:
            yield replace(each, instead=f"{each.instead}. {NO_REASON}" if each.instead else NO_REASON)


def _blank(pattern: Pattern[str], text: str) -> str:
    def instead(match: Match[str]) -> str:
        # A macro of C goes on after a comment over several lines if each of these ends in a backslash.
        lines = "".join(re.findall(r"\\?\n" if pattern is _C else r"\n", match[0]))
        return lines or " " if match[0].startswith(_COMMENTS) else f'""{lines}'

    return pattern.sub(instead, text)


def _suppressions(pattern: Pattern[str], text: str) -> dict[int, str]:
    if MARK not in text:
        return {}
    reasons = {}
    for match in pattern.finditer(text):
        if match[0].startswith(_COMMENTS):
            for line, comment in enumerate(match[0].split("\n"), line_of(text, match.start())):
                if (reason := suppression_reason(comment)) is not None:
                    reasons[line] = reason
    return reasons


# Functions that return a borrowed reference, which another thread can invalidate -> those that return a new one.
BORROWED = {
    "PyList_GetItem": "PyList_GetItemRef", "PyList_GET_ITEM": "PyList_GetItemRef",
    "PyDict_GetItem": "PyDict_GetItemRef", "PyDict_GetItemWithError": "PyDict_GetItemRef",
    "_PyDict_GetItemWithError": "PyDict_GetItemRef", "_PyDict_GetItemStringWithError": "PyDict_GetItemStringRef",
    "PyDict_GetItemString": "PyDict_GetItemStringRef", "PyDict_SetDefault": "PyDict_SetDefaultRef",
    "PyWeakref_GetObject": "PyWeakref_GetRef", "PyWeakref_GET_OBJECT": "PyWeakref_GetRef",
    "PyImport_AddModule": "PyImport_AddModuleRef", "PyImport_AddModuleObject": "PyImport_AddModuleRef",
    "PyCell_GET": "PyCell_Get",
    "PySys_GetObject": "PySys_GetAttr on 3.15; before, the attribute of the imported module sys",
    "PyEval_GetLocals": "PyEval_GetFrameLocals", "PyEval_GetGlobals": "PyEval_GetFrameGlobals",
}
CRITICAL = "Py_BEGIN_CRITICAL_SECTION around it, where others may change the object"
THREADS = "a list of your own with a lock, or PyEval_SetProfileAllThreads: a thread may end meanwhile"
UNLOCKED = {
    "PyDict_Next": "Py_BEGIN_CRITICAL_SECTION around the loop",
    "_PyDict_Next": "Py_BEGIN_CRITICAL_SECTION around the loop",
    "PyList_SET_ITEM": "PyList_SetItem, unless the list is new and nobody else has it",
    "PyInterpreterState_ThreadHead": THREADS, "PyThreadState_Next": THREADS,
    "PySequence_Fast_GET_ITEM": CRITICAL, "PySequence_Fast_GET_SIZE": CRITICAL, "PySequence_Fast_ITEMS": CRITICAL,
}
MEMORY = "PyMem_{}, unless it is for a Python object"
ALLOCATING = {f"PyObject_{name}": MEMORY.format(name.capitalize()) for name in (
    "Malloc", "MALLOC", "Calloc", "Realloc", "REALLOC")}
_KINDS: tuple[tuple[dict[str, str], Concern], ...] = (
    (BORROWED, "borrowed reference"), (UNLOCKED, "no lock"), (ALLOCATING, "allocation"))
# Each risky call -> its kind, and what to use instead.
RISKY_CALLS = {name: (concern, instead) for table, concern in _KINDS for name, instead in table.items()}
RISKY_CALL = re.compile(rf"\b({'|'.join(sorted(map(re.escape, RISKY_CALLS), key=len, reverse=True))})\s*\(")


def risky_calls(code: str) -> Iterator[Remark]:
    """Yield the calls that only the GIL made safe, in Cython, Rust or a macro of C, without comments and strings."""
    line, seen = 1, 0
    for match in RISKY_CALL.finditer(code):
        line += code.count("\n", seen, match.start())
        seen = match.start()
        concern, instead = RISKY_CALLS[match[1]]
        yield Remark(line=line, concern=concern, what=match[1], instead=instead)
