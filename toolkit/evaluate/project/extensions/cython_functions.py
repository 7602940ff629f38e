"""Know the functions and extension types of Cython, and which of what they write to no other thread has.

Private is what a function has made, its own structs, what every caller gives a `cdef` function from these, and whatever
is reached with a lock held, or while the object is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

_CLASS = re.compile(r"cdef\s+(?:public\s+|api\s+)*class\s+\w+")
_METHOD = re.compile(r"(?:async\s+)?(?P<kind>c?p?def)\b(?!(?:\s+\w+)*\s+class\b)(?P<head>[^=(]*?)\b(?P<name>\w+)\s*\(")
_GUARD = re.compile(r"\bcritical_section\b|(?<![a-z])(?:r?lock|mutex)", re.IGNORECASE)
MUTEX = re.compile(r"\bpymutex\s+(\w+)")
_NAMED_CLASS = re.compile(r"^[ \t]*cdef\s+(?:public\s+|api\s+)*class\s+(?:\w+\.)*(\w+)", re.MULTILINE)
_CPP_CONTAINER = (r"(?:(?:unordered_)?(?:multi)?map|unordered_set|multiset|vector|deque|priority_queue)\s*\["
                  r"[^\n]*\]")
_ALIASED = re.compile(rf"^[ \t]*ctypedef\s+{_CPP_CONTAINER}\s*(\w+)[ \t]*$", re.MULTILINE)
_ATTRIBUTE = r"(?m)^[ \t]+cdef\s+(?:public\s+|readonly\s+)?"
_CHANGES_OF_PYTHON = r"add|append|clear|discard|extend|insert|pop|popitem|remove|setdefault|update"
_LOCAL = re.compile(r"cdef\s+(?:const\s+)?(?P<type>[A-Za-z_][\w.]*(?:\[[^\]]*\])?)(?P<rest>[\s*]+\w.*)$")
_DECLARED = re.compile(r"\s*(?P<stars>[\s*]*)(?P<name>\w+)\s*(?:=(?!=)\s*(?P<value>.*))?$")
_CASTS = re.compile(r"^(?:<[^<>]*>\s*)+")
# Values that no other thread has: memory or an object that the function has just got.
_NEW = re.compile(r"(?:[\w.]+\.)?\w*(?:alloc|new|create|make|clone|copy)\w*\s*\(|(?:NULL|None)$", re.IGNORECASE)
# Methods that run while no other thread has the object.
EXCLUSIVE_METHODS = frozenset({"__cinit__", "__init__", "__dealloc__", "__del__", "__setstate_cython__"})


@dataclass(slots=True)
class CythonFunction:
    """A function, or a method of an extension type."""

    name: str
    method: bool       # of an extension type
    inner: bool        # `cdef`: Python code cannot call it
    guarded: bool      # its decorator locks the whole function
    indent: int
    head: str          # its first line
    lines: list[tuple[int, str, bool]] = field(default_factory=list)   # number, text, True if a lock is held
    locks: list[int] = field(default_factory=list)   # indentation of each `with LOCK` around the last line
    mutexes: frozenset[str] = frozenset()   # variables and attributes that are locks, whatever they are called

    def continues(self, indent: int, text: str) -> bool:
        """Return True if a line belongs to the function."""
        return indent > self.indent or text.startswith((")", "]", "}"))

    def add(self, number: int, indent: int, text: str) -> None:
        """Add a line."""
        self.locks = [each for each in self.locks if indent > each]
        if text.startswith("with ") and (_GUARD.search(text) or self.mutexes & {*re.findall(r"\w+", text)}):
            self.locks.append(indent)
        self.lines.append((number, text, bool(self.locks)))

    @property
    def kept(self) -> dict[str, str]:
        """The local variables that stand for what an attribute of the object holds, and for which."""
        return {found[1]: found[2] for _, text, _ in self.lines
                if (found := re.match(r"(?:cdef\s+\w+\s+)?(\w+)\s*=\s*self\s*\.\s*(\w+)$", text))}

    @property
    def attributes(self) -> set[str]:
        """The attributes of the object that the method names."""
        return {*self.kept.values(), *re.findall(r"(?<![\w.])self\s*\.\s*(\w+)", " ".join(
            text for _, text, _ in self.lines))}

    @property
    def pointers(self) -> list[tuple[int, str]]:
        """The parameters that point to what the caller has: index and name."""
        return [(place, found[1]) for place, each in enumerate(self.parameters)
                if (found := re.match(r"\s*(?!const\b|char\b|void\b)[\w.]+\s*\*\s*(\w+)\s*$", each))]

    @property
    def typed(self) -> list[tuple[int, str, str]]:
        """The parameters that are objects of a type: index, type and name."""
        return [(place, found[1], found[2]) for place, each in enumerate(self.parameters)
                if (found := re.match(r"\s*(\w+)\s+(\w+)\s*(?:(?:not|or)\s+None\s*)?(?:=.*)?$", each))]

    @property
    def parameters(self) -> list[str]:
        """The parameters as they are written."""
        head = self.head
        for _, text, _ in self.lines:
            if head.rstrip().endswith(":"):
                break
            head += f" {text}"
        return head.partition("(")[2].rpartition(")")[0].split(",")


class CythonModule:
    """The functions and extension types of a module, and which attributes of these hold containers that change."""

    def __init__(self, code: str, functions: Sequence[CythonFunction]) -> None:
        """Read the declarations in `code`, and what the functions do to the attributes."""
        self.functions = functions
        self.classes = frozenset(_NAMED_CLASS.findall(code))
        kinds = "|".join([_CPP_CONTAINER, *(rf"{name}\b" for name in _ALIASED.findall(code))])
        self.of_cpp = frozenset(re.findall(rf"{_ATTRIBUTE}(?:{kinds})\s*(\w+)[ \t]*$", code))
        self.maps = frozenset(re.findall(rf"{_ATTRIBUTE}(?:unordered_)?map\s*\[[^\n]*\]\s*(\w+)[ \t]*$", code))
        listed = re.findall(rf"{_ATTRIBUTE}(?:dict|set)\s+(\w[\w, ]*?)[ \t]*$", code)
        made = re.findall(r"(?m)^[ \t]+(?:self\s*\.\s*)?(\w+)\s*=\s*(?:\{\}|set\(\)|dict\(\))[ \t]*$", code)
        named = {name for each in listed for name in re.split(r"\s*,\s*", each)} | {*made}
        stored = [(each, found[1], found[2]) for each in functions if each.method for _, text, _ in each.lines
                  for found in re.finditer(r"(?<![\w.])self\s*\.\s*(\w+)\s*=(?!=)\s*(.*)", text)]
        changed = {name for each in functions if each.method and each.name not in EXCLUSIVE_METHODS
                   for name in each.attributes if _changes(each, name)}
        self.locking = frozenset(named)        # dicts and sets of Python, which lock themselves
        self.changing = self.locking & changed
        # Set while the object is made, to what that makes or gets from a call, and left as it is.
        self.constant = frozenset(name for _, name, _ in stored) - changed - {name for each, name, value in stored if (
            each.name not in EXCLUSIVE_METHODS or not re.match(r"[\w.]+\s*\(|[\[{]", value))}
        self.of_thread = frozenset(re.findall(   # each thread has its own
            r"(?m)^[ \t]+self\s*\.\s*(\w+)\s*=\s*(?:threading\s*\.\s*)?local\(\)", code))


def _changes(function: CythonFunction, attribute: str) -> bool:
    """Return True if a method adds to, or takes from, a container of Python that an attribute holds."""
    names = "|".join([rf"self\s*\.\s*{attribute}", *(name for name, of in function.kept.items() if of == attribute)])
    change = re.compile(rf"(?<![\w.])(?:{names})\s*(?:\.\s*(?:{_CHANGES_OF_PYTHON})\s*\("
                        rf"|\[[^\[\]]*\]\s*[-+|&]?=(?!=))|\bdel\s+(?:{names})\s*\[")
    return any(change.search(text) for _, text, _ in function.lines)


def functions_of(code: str, mutexes: frozenset[str]) -> Iterator[CythonFunction]:
    """Yield the functions of a module and the methods of its extension types, with their lines."""
    inside, plain, decorated = -1, -1, False   # indentation of the extension type, of the plain class; -1 outside
    function: CythonFunction | None = None
    for number, line in enumerate(code.split("\n"), 1):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if function is not None and text and function.continues(indent, text):
            function.add(number, indent, text)
            continue
        if text and function is not None:
            yield function
            function = None
        inside = indent if _CLASS.match(text) else (-1 if text and indent <= inside else inside)
        plain = indent if text.startswith("class ") else (-1 if text and indent <= plain else plain)
        if text.startswith("@"):
            decorated = decorated or "critical_section" in text
        elif match := _METHOD.match(text):
            function = CythonFunction(match["name"], inside >= 0 and plain < 0, match["kind"] == "cdef", decorated,
                                      indent, text, mutexes=mutexes)
            decorated = False
            if body := re.search(r"\)[^():]*:\s*(\S.*)$", text):   # in the same line
                function.add(number, indent + 1, body[1])
    if function is not None:
        yield function


def values_of(function: CythonFunction, name: str) -> list[str]:
    """Return the expressions that a function assigns to a variable."""
    return [found[1] for _, text, _ in function.lines
            if (found := re.match(rf"(?:cdef\s+\w+\s+)?{re.escape(name)}\s*=(?!=)\s*(.*)", text))]


def parts_of(listed: str) -> Iterator[str]:
    """Yield the parts of a list, such as arguments, which commas outside of brackets separate."""
    depth, start = 0, 0
    for at, letter in enumerate(listed):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            yield listed[start:at]
            start = at + 1
    yield listed[start:]


def aliases_of(function: CythonFunction, everywhere: Sequence[CythonFunction], safe: Container[str],
             classes: Container[str]) -> list[str]:
    """Return the local variables and parameters of a function that stand for structs or objects others may have."""
    mine: set[str] = set()                       # structs of its own
    values: dict[str, list[str]] = {}            # of pointers, and of objects of extension types
    for _, text, _ in function.lines:
        if (found := _LOCAL.match(text)) and not text.endswith(":"):
            for each in parts_of(found["rest"]):
                if part := _DECLARED.match(each):
                    if part["stars"].strip() or found["type"] in classes:
                        values.setdefault(part["name"], []).extend(filter(None, [part["value"]]))
                    else:
                        mine.add(part["name"])
    for _, text, _ in function.lines:
        if (found := re.match(r"(\w+)\s*=(?!=)\s*(.*)", text)) and found[1] in values:
            values[found[1]].append(found[2])
        if (found := re.match(r"for\s+(\w+)\s+in\b", text)) and found[1] in values:
            values[found[1]].append(text)
    given = {name for place, kind, name in function.typed if kind in classes and not (
        function.inner and is_private(function, place, everywhere, safe, classes))}
    private: set[str] = {*mine}
    candidates = {name for name, all_of in values.items() if all_of and name not in given}
    # Start with all candidates, so that variables that are set to each other can be private.
    private |= candidates
    while shared := {name for name in candidates & private
                     if not all(is_new(each, private, classes) for each in values[name])}:
        private -= shared
    return sorted({name for name, all_of in values.items() if all_of and name not in private} | given)


def is_new(value: str, private: Container[str], classes: Container[str]) -> bool:
    """Return True if nobody else has what an expression gives: it is made there, or belongs to a private variable."""
    value = _CASTS.sub("", value.strip()).lstrip("(")
    if _NEW.match(value):
        return True
    made = re.match(r"(\w+)(?:\s*\.\s*__new__)?\s*\(", value)
    if made:
        return made[1] in classes
    base = re.match(r"&?\s*\(?\s*(\w+)", value)
    return base is not None and base[1] in private


def is_private(function: CythonFunction, place: int, everywhere: Sequence[CythonFunction], safe: Container[str],
                classes: Container[str] = ()) -> bool:
    """Return True if each call gives the address of a local variable, or an object made there, or holds a lock."""
    calls = []
    for by in everywhere:
        text = " ".join(line for _, line, _ in by.lines)
        local = {*re.findall(r"\bcdef\s+[\w.]+\s+(\w+)\b(?!\s*\()", text)}
        for _, line, held in by.lines:
            for match in re.finditer(rf"(?<![\w.]){function.name}\s*\(", line):
                given = text[text.find(line) + match.end():].split(",")
                word = re.match(r"(&?)\s*(\w+)(?![\w.\[(])", given[place].strip()) if len(given) > place else None
                calls.append(held or by.guarded or by.name in safe or (word is not None and (
                    word[2] in local if word[1] else _is_made(by, word[2], classes))))
    return bool(calls) and all(calls)


def _is_made(function: CythonFunction, name: str, classes: Container[str]) -> bool:
    """Return True if each value of a local variable is an object of an extension type that the function makes."""
    values = values_of(function, name)
    return bool(values) and all(is_new(each, (), classes) for each in values)


def safe_functions(functions: Sequence[CythonFunction]) -> set[str]:
    """Return the functions in which no other thread writes: locked, on a private object, or called only by such."""
    safe = {each.name for each in functions if each.guarded or (each.method and each.name in EXCLUSIVE_METHODS)}
    calls = {each.name: [(by.name, held) for by in functions for _, text, held in by.lines
                         if re.search(rf"(?:\bself\s*\.\s*|(?<![\w.])){each.name}\s*\(", text)]
             for each in functions if each.inner}
    safe |= {name for name, by in calls.items() if not by and _is_called_on_new_objects(name, functions)}
    # Start with all candidates, so that functions that call each other can be safe, and remove the unsafe ones.
    within = {name for name, by in calls.items() if by}
    while unsafe := {name for name in within - safe
                     if not all(held or caller in safe | within for caller, held in calls[name])}:
        within -= unsafe
    return safe | within


def _is_called_on_new_objects(method: str, functions: Sequence[CythonFunction]) -> bool:
    """Return True if the method is called, and each time on an object that the calling function has made."""
    calls = []
    for by in functions:
        text = "\n".join(line for _, line, _ in by.lines)
        for match in re.finditer(rf"(?<![\w.])(\w+)\s*\.\s*{method}\s*\(", text):
            made = rf"(?m)^\s*(?:cdef\s+\w+\s+)?{match[1]}\s*=\s*([A-Z]\w*)\s*(?:\.\s*__new__\s*)?\("
            assigned = rf"(?m)^\s*(?:cdef\s+\w+\s+)?{match[1]}\s*=(?!=)"
            calls.append(len(re.findall(made, text)) == len(re.findall(assigned, text)) > 0)
        if re.search(rf"[\w)\]]\s*\.\s*\w+\s*\.\s*{method}\s*\(|[)\]]\s*\.\s*{method}\s*\(", text):
            return False
    return bool(calls) and all(calls)
