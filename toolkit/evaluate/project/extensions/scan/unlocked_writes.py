"""Which code of C and C++ holds a lock, and where it writes to what objects keep without one.

Source: "C API Extension Support for Free Threading" of CPython's documentation: critical sections.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Remark

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

INSTEAD = "Py_BEGIN_CRITICAL_SECTION(self) or PyMutex_Lock around it, where threads may share the object"
_TAKES = (r"Py_BEGIN_CRITICAL_SECTION\w*|PyMutex_Lock\w*|pthread_(?:mutex|spin)_lock|pthread_rwlock_wrlock|"
          r"PyThread_acquire_lock\w*|mtx_lock|EnterCriticalSection|AcquireSRWLockExclusive")
_LETS_GO = (r"Py_END_CRITICAL_SECTION\w*|PyMutex_Unlock\w*|pthread_(?:mutex|spin|rwlock)_unlock|"
            r"PyThread_release_lock|mtx_unlock|LeaveCriticalSection|ReleaseSRWLockExclusive")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\\\n]|\\\n|\\.)*)", re.MULTILINE)
_GUARD = re.compile(r"\bstd\s*::\s*(?:lock_guard|scoped_lock|unique_lock)\b")
_LEAVES = re.compile(r"\b(?:return|goto|break|continue)\b")
_OPENS = re.compile(r"\b(?:namespace|extern|class|struct)\b[^=()]*$")
_NAME = re.compile(r"([\w~]+)\s*\([^{};]*\)[\w\s]*$")
_BASE = r"(?:\w+\s*\([^()]*\)|\(\s*\([^()]*\)\s*\w+\s*\)|\(\s*\*\s*\w+\s*\)|\w+)"
_FIELD = _BASE + r"(?:\s*(?:->|\.)\s*\w+|\s*\[[^\[\]]*\])+"
_WRITE = re.compile(rf"(?:\+\+|--)\s*(?P<before>{_FIELD})|\bPy_(?:CLEAR|X?SETREF)\s*\(\s*(?P<macro>{_FIELD})"
                    rf"|(?<![\w.>])(?P<field>{_FIELD})\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))")
# What these write to nobody else has yet, or no more; the collector calls `clear` with all threads stopped.
_ALONE = {"init", "new", "alloc", "create", "make", "dealloc", "free", "del", "delete", "destroy", "finalize", "fini",
          "traverse", "exec"}
_SLOT = r"tp_(?:init|new|alloc|dealloc|free|finalize|del|traverse|clear)|Py_mod_exec|m_(?:clear|traverse|free)"
_CAST = r"\(\s*(?:initproc|newfunc|destructor|traverseproc|inquiry|freefunc)\s*\)"
# What another function has handed out for this one to fill.
_FILLED = re.compile(r"\b(?:Py_buffer|Py_complex|PyThreadState|PyConfig)\s*\*+\s*(?:const\s+)?(\w+)")
_MADE = re.compile(r"\w*(?:new|alloc|create)\w*\s*\(", re.IGNORECASE)
_NONE = re.compile(r"(?:NULL|nullptr|0)\b")
_CASTED = re.compile(r"(?:\(\s*[\w\s]+\*+\s*\)\s*)+")


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    start: int      # of its braces
    end: int
    head: str


class Locking:
    """Which places of a source hold a lock; `code` is without comments and strings."""

    def __init__(self, code: str) -> None:
        self._whole = code
        self._code = re.sub(r"^[ \t]*#(?:[^\\\n]|\\\n|\\.)*", lambda match: re.sub(r"[^\n]", " ", match[0]), code,
                            flags=re.MULTILINE)   # as long as it was
        bodies = [(match[1], match[2]) for match in _MACRO.finditer(code)]
        takes = [name for name, body in bodies if re.search(rf"\b(?:{_TAKES})\b", body)]
        lets_go = [name for name, body in bodies if re.search(rf"\b(?:{_LETS_GO})\b", body)]
        self._takes = _words(_TAKES, set(takes) - set(lets_go))
        self._lets_go = _words(_LETS_GO, set(lets_go) - set(takes))
        self._functions = list(_functions(self._code))
        self._ranges = [found for each in self._functions for found in self._locked(each)]

    def held(self, place: int) -> bool:
        """Return whether a lock is held there."""
        return any(start <= place < end for start, end in self._ranges)

    def writes(self, judged: Collection[int]) -> Iterator[Remark]:
        """Yield writes to what objects keep, without a lock, but for those in lines that somebody has `judged`."""
        breaks = [match.start() for match in re.finditer("\n", self._code)]
        guarded = self._guarded()
        for each in self._functions:
            if each.name in guarded:
                continue
            own = self._own(each)
            for match in _WRITE.finditer(self._code, each.start, each.end):
                field = next(filter(None, match.groups()))
                base = re.search(r"\w+", _CASTED.sub("", field))
                line = bisect_right(breaks, match.start()) + 1
                if (("->" in field or re.match(r"\(\s*\*", field)) and not self.held(match.start())
                        and line not in judged and not (base and base[0] in own)):
                    yield Remark(line=line, concern="unlocked write", what=" ".join(field.split()), instead=INSTEAD)

    def _locked(self, function: _Function) -> Iterator[tuple[int, int]]:
        """Yield from where to where a function holds a lock."""
        code, depth, held = self._code, 0, []
        tokens = re.compile(rf"(?P<take>{self._takes})|(?P<go>{self._lets_go})|(?P<guard>{_GUARD.pattern})|[{{}}]")
        for match in tokens.finditer(code, function.start, function.end):
            if match[0] in "{}":
                depth += 1 if match[0] == "{" else -1
            elif match["guard"]:
                yield match.start(), _end_of_block(code, match.end(), function.end)
            elif match["take"]:
                held.append((match.start(), depth))
            elif held and not (depth > held[-1][1] and _LEAVES.search(code, match.end(), max(
                    match.end(), code.find("}", match.end())))):   # let go on a way out of the middle
                yield held.pop()[0], match.start()
        yield from ((start, function.end) for start, _ in held)

    def _guarded(self) -> set[str]:
        """Return the functions that are called where nobody else writes: with a lock, or on what nobody else has."""
        code = self._code
        inside = {each.name for each in self._functions}
        tables = set(re.findall(r"\w+", " ".join(re.findall(r'\{\s*""\s*,[^{}]*\}', self._whole))))
        slots = set(re.findall(rf"\b(?:Py_)?(?:{_SLOT})\s*[,=]\s*(?:\([^()]*\)\s*)?(\w+)|{_CAST}\s*(\w+)", code))
        named = {name for pair in slots for name in pair if name}
        sure = {name for name in inside - tables
                if name in named or name.startswith("PyInit_") or _last_word(name) in _ALONE}
        calls: dict[str, list[tuple[int, str]]] = {name: [] for name in inside}
        taken = tables | self._elsewhere(inside)    # they are called by others, from anywhere
        for each in self._functions:
            for match in re.finditer(r"\b(\w+)\b(\s*\()?", code[each.start:each.end]):
                if match[1] in calls:
                    calls[match[1]].append((each.start + match.start(), each.name))
                    taken |= set() if match[2] else {match[1]}
        ends = {name for name in inside - tables if _last_word(name) == "clear"}
        static = {each.name for each in self._functions if re.search(r"\b(?:static|inline|Py_LOCAL\w*)\b", each.head)}
        while True:
            more = {name for name in static - sure - (taken - ends) if (calls[name] or name in ends)
                    and all(self.held(place) or by in sure or by == name for place, by in calls[name])}
            if not more:
                return sure
            sure |= more

    def _elsewhere(self, names: Collection[str]) -> set[str]:
        """Return which functions stand in tables or macros: who calls them is not seen."""
        kept, place = [], 0
        for each in self._functions:
            kept.append(self._whole[place:each.start])
            place = each.end
        outside = "".join([*kept, self._whole[place:]])
        macros = " ".join(body for _, body in _MACRO.findall(outside))
        tables = re.findall(r"\b(\w+)\b(?!\s*\()", outside)
        return {*tables, *re.findall(r"\w+", macros)} & set(names)

    def _own(self, function: _Function) -> set[str]:
        """Return the names of what a function has made itself, or was given to fill."""
        body = self._code[function.start:function.end]
        own = {*_FILLED.findall(function.head), *_FILLED.findall(body)}
        values: dict[str, list[str]] = {}
        for name, value in re.findall(r"(?<![\w.>])(\w+)\s*=(?!=)\s*([^;]*)", body):
            values.setdefault(name, []).append(_CASTED.sub("", value))
        for name, given in values.items():
            given = [value for value in given if not _NONE.match(value)]  # noqa: PLW2901
            if given and all(_MADE.match(value) or _is_local(value, body) or re.match(r"\w+->tp_alloc\b", value)
                             for value in given):
                own.add(name)
        return own


def _is_local(value: str, body: str) -> bool:
    """Return whether a value is the address of a variable of the function's own."""
    found = re.fullmatch(r"&\s*(\w+)\s*", value)
    return found is not None and re.search(
        rf"^[ \t]*(?!static\b|return\b|extern\b)(?:\w+[ \t]+)+{found[1]}\s*[;=,\[]", body, re.MULTILINE) is not None


def _words(usual: str, names: Collection[str]) -> str:
    return rf"\b(?:{'|'.join([usual, *map(re.escape, names)])})\b"


def _last_word(name: str) -> str:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return words[-1].lower() if words else ""


def _functions(code: str) -> Iterator[_Function]:
    """Yield the functions of a source; those of classes and namespaces, too."""
    place, head = 0, 0
    brackets = re.compile(r"[{};]")
    while match := brackets.search(code, place):
        place = match.end()
        if match[0] != "{":
            head = place
            continue
        before = code[head:match.start()]
        name = _NAME.search(before)
        if name is None and _OPENS.search(before):
            head = place
            continue
        end = _end_of_block(code, place, len(code))
        # Branches of the preprocessor may open more than they close: a function ends where a line begins with its end.
        outermost = code.find("\n}", place)
        end = end if outermost < 0 else min(end, outermost + 2)
        if name is not None and "=" not in before:
            yield _Function(name[1], match.start(), end, before)
        place = head = end


def _end_of_block(code: str, place: int, end: int) -> int:
    """Return the place behind the brace that closes the block that `place` is in."""
    depth = 1
    for match in re.compile("[{}]").finditer(code, place, end):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.end()
    return end
