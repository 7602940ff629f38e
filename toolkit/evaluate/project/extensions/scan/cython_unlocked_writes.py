"""Where methods of Cython's extension types write to what their object keeps without a lock.

Source: "Free threading" of Cython's documentation, 3.1 and later: cython.critical_section, cython.pymutex.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Remark

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

INSTEAD = "@cython.critical_section, or `with` a cython.pymutex around it, where threads may share the object"
_CLASS = re.compile(r"cdef\s+(?:public\s+|api\s+)*class\s+\w+")
_METHOD = re.compile(r"(?:async\s+)?(?P<kind>c?p?def)\b(?P<head>[^=(]*?)\b(?P<name>\w+)\s*\(")
_GUARD = re.compile(r"\bcritical_section\b|(?<![a-z])(?:r?lock|mutex)", re.IGNORECASE)
_KEPT = r"self(?:\s*\.\s*\w+|\[[^\[\]]*\])+"
_WRITE = re.compile(rf"(?<![\w.])(?P<stored>{_KEPT})\s*(?:[-+%&|^@]|\*\*?|//?|<<|>>)?=(?!=)"
                    rf"|^(?P<first>{_KEPT})\s*,[^=(]*=(?!=)|&\s*(?P<place>{_KEPT})")
# Nobody else has the object yet, or any more.
_ALONE = frozenset({"__cinit__", "__init__", "__dealloc__", "__del__", "__setstate_cython__"})


@dataclass(slots=True)
class _Method:
    """A method of an extension type."""

    name: str
    inner: bool        # Python code cannot call it
    guarded: bool      # all of it holds a lock
    indent: int
    lines: list[tuple[int, str, bool]] = field(default_factory=list)   # number, text, whether a lock is held there
    locks: list[int] = field(default_factory=list)   # indentation of each `with` of one, around the last line

    def goes_on(self, indent: int, text: str) -> bool:
        """Return whether a line is one of the method's."""
        return indent > self.indent or text.startswith((")", "]", "}"))

    def add(self, number: int, indent: int, text: str) -> None:
        """Add a line."""
        self.locks = [each for each in self.locks if indent > each]
        if text.startswith("with ") and _GUARD.search(text):
            self.locks.append(indent)
        self.lines.append((number, text, bool(self.locks)))


def writes(code: str, judged: Collection[int]) -> Iterator[Remark]:
    """Yield writes to what objects keep, without a lock, in code without comments, but for lines `judged` by somebody.

    Where the address of an attribute is given away it is written to.
    """
    methods = list(_methods(code.split("\n")))
    safe = _safe(methods)
    for method in methods:
        for number, text, held in method.lines if method.name not in safe else ():
            match = None if held or number in judged else _WRITE.search(text)
            if match:
                field = next(filter(None, match.groups()))
                yield Remark(line=number, concern="unlocked write", what="".join(field.split()), instead=INSTEAD)


def _methods(lines: Sequence[str]) -> Iterator[_Method]:
    """Yield the methods of extension types, with their lines."""
    inside, decorated = -1, False   # the indentation of the class
    method: _Method | None = None
    for number, line in enumerate(lines, 1):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if method is not None and text and method.goes_on(indent, text):
            method.add(number, indent, text)
            continue
        if text and method is not None:
            yield method
            method = None
        inside = indent if _CLASS.match(text) else (-1 if text and indent <= inside else inside)
        if inside >= 0 and text.startswith("@"):
            decorated = decorated or "critical_section" in text
        elif inside >= 0 and (match := _METHOD.match(text)):
            method = _Method(match["name"], match["kind"] == "cdef", decorated, indent)
            decorated = False
    if method is not None:
        yield method


def _safe(methods: Sequence[_Method]) -> set[str]:
    """Return the methods in which nobody else writes: with a lock, without others, or called by such alone."""
    safe = {each.name for each in methods if each.guarded or each.name in _ALONE}
    calls = {each.name: [(by.name, held) for by in methods for _, text, held in by.lines
                         if re.search(rf"\bself\s*\.\s*{each.name}\s*\(", text)]
             for each in methods if each.inner}
    # Those that call each other are safe together: what is not is called from outside.
    within = {name for name, by in calls.items() if by}
    while unsafe := {name for name in within - safe
                     if not all(held or caller in safe | within for caller, held in calls[name])}:
        within -= unsafe
    return safe | within
