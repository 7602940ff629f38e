"""Find what only the GIL makes safe in functions of Cython: writes, loops over containers, borrowed references."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.cython_functions import (
    aliases_of,
    is_private,
    parts_of,
    safe_functions,
    values_of,
)
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Remark
from gilscope.toolkit.evaluate.project.extensions.source_text import RISKY_CALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.project.extensions.cython_functions import CythonFunction, CythonModule

LOCK_AROUND = "@cython.critical_section, or `with` a cython.pymutex around it, where threads may share the object"
ITERATE = "cython.critical_section, or `with` a cython.pymutex around the loop and around each change"
_STORED = r"self(?:\s*\.\s*\w+|\[[^\[\]]*\])+"
_WRITE = re.compile(rf"(?<![\w.])(?P<stored>{_STORED})\s*(?:[-+%&|^@]|\*\*?|//?|<<|>>)?=(?!=)"
                    rf"|^(?P<first>{_STORED})\s*,[^=(]*=(?!=)|&\s*(?P<place>{_STORED})")
_CHANGES = "assign|clear|emplace|emplace_back|erase|insert|pop|pop_back|pop_front|push|push_back|push_front|resize|swap"
_LOOP = re.compile(r"\bfor\s+[^:]*?\s+in\s+(?:enumerate\s*\(\s*)?(?P<of>\w+(?:\s*\.\s*\w+)*?)"
                   r"(?:\s*\.\s*(?:items|keys|values)\s*\(\s*\))?\s*(?:\)\s*)?(?:[:\]})]|if\b|$)")
_UNPACKED = re.compile(r"\*\s*\w+\s*=(?!=)\s*(?P<of>self\s*\.\s*\w+)"
                       r"(?:\s*\.\s*(?:items|keys|values)\s*\(\s*\))?\s*$")
_CONVERTED = re.compile(r"(?:<\s*(?:dict|list|set|object)\s*>\s*|\bcdef\s+(?:dict|list|set)\s+\w+\s*=\s*)"
                        r"(?P<of>self\s*\.\s*\w+)(?!\s*[\w.\[(])")
_MEMORY = re.compile(r"\b(?:mem(?:cpy|move|set)|free|realloc|PyMem_(?:Raw)?(?:Free|Realloc))\s*\(\s*(?:<[^<>]*>\s*)*"
                     r"(?:(?P<field>self\s*\.\s*\w+)|(?P<copy>\w+))")
_NEW_CONTAINER = re.compile(r"(?:<[^<>]*>\s*)*(?:\{|\[|(?:dict|list|set|sorted)\s*\(|Py(?:Dict|List|Set)_New\s*\(|"
                            r"PyDict_Copy\s*\(|PySequence_List\s*\()")


def writes_of(functions: Sequence[CythonFunction], module: CythonModule) -> Iterator[Remark]:
    """Yield unlocked writes to attributes of extension types, and through what points to what others may have.

    That is a pointer that a `cdef` function gets, or a local variable: a pointer to a struct, or an object of an
    extension type.  Taking the address of an attribute counts as a write, unless it is given to a function that is
    read, too; so does a subscript of a map of C++, which inserts what is absent.
    """
    safe = safe_functions(module.functions)
    read = {each.name for each in module.functions if each.inner and each.pointers}
    for function in functions:
        if function.name in safe:
            continue
        pointers = [name for place, name in function.pointers
                    if not is_private(function, place, module.functions, safe)]
        pointers += aliases_of(function, module.functions, safe, module.classes)
        through = _through(pointers) if pointers else None
        changed = _changed_in_cpp([*pointers, *(["self"] if function.method else [])], module)
        open_call = ""   # the function whose arguments go on in the next line
        for number, text, held in function.lines:
            before, open_call = open_call, _open_call(text, open_call)
            if held:
                continue
            found = []
            if stored := through.search(text) if through else None:
                found.append(stored["what"] or stored["changed"])
            match = _WRITE.search(text) if function.method else None
            if match and not (match["place"] and _callee(text, match.start(), before) in read) and not (
                    _is_safe_store(function, next(filter(None, match.groups())), module)):
                found.append(next(filter(None, match.groups())))
            if not found and changed and (inserted := changed.search(text)):
                found.append(inserted["what"])
            for what in found:
                yield Remark(line=number, concern="unlocked write", what="".join(what.split()), instead=LOCK_AROUND)


def memory_writes_of(functions: Sequence[CythonFunction], module: CythonModule) -> Iterator[Remark]:
    """Yield unlocked calls that change or free the memory that an attribute, or a local copy of it, points to."""
    safe = safe_functions(module.functions)
    for function in functions:
        if not function.method or function.name in safe:
            continue
        copies = {found[1]: found[2] for _, text, _ in function.lines
                  if (found := re.match(r"(?:cdef\s+)?[\w. ]+\*\s*(\w+)\s*=\s*(self\s*\.\s*\w+)$", text))}
        for number, text, held in function.lines:
            for match in _MEMORY.finditer(text) if not held else ():
                if named := match["field"] or copies.get(match["copy"] or ""):
                    yield Remark(line=number, concern="unlocked write", what="".join(named.split()),
                                 instead=LOCK_AROUND)


def _is_safe_store(function: CythonFunction, stored: str, module: CythonModule) -> bool:
    """Return True for an item of a dict that is not looked up before, and for what each thread has of its own."""
    found = re.match(r"self\s*\.\s*(\w+)\s*(.?)", stored)
    if found is None or not found[2]:
        return False
    if found[1] in module.of_thread:
        return True
    words = "|".join([rf"self\s*\.\s*{found[1]}", *(name for name, of in function.kept.items() if of == found[1])])
    looks = re.compile(rf"(?:{words})\s*(?:\.\s*(?:get|pop|keys|items|values)\s*\(|\[[^\[\]]*\](?!\s*=(?!=)))"
                       rf"|\bin\s+(?:{words})\b")
    return (found[2] == "[" and found[1] in module.locking
            and not any(looks.search(text) for _, text, _ in function.lines))


def _through(names: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of a write through one of these pointers: to a field, or to a container of C++."""
    words = "|".join(names)
    return re.compile(
        rf"(?<![\w.])(?P<what>(?:(?:{words})(?:\[[^\[\]]*\])?(?:\s*\.\s*\w+)+"
        rf"|deref\(\s*(?:{words})\s*\)(?:\s*\.\s*\w+)*(?:\[[^\[\]]*\])?)(?:\[[^\[\]]*\])*)"
        rf"\s*(?:[-+%&|^@]|\*\*?|//?|<<|>>)?=(?!=)"
        rf"|(?P<changed>deref\(\s*(?:{words})\s*\))\s*\.\s*(?:{_CHANGES})\s*\(")


def _changed_in_cpp(names: Sequence[str], module: CythonModule) -> re.Pattern[str] | None:
    """Return the pattern of a change of a container of C++ in an attribute of one of these; None if there is none."""
    changes = []
    if module.of_cpp:
        changes.append(rf"(?:{'|'.join(module.of_cpp)})\b(?:\[[^\[\]]*\])?\s*\.\s*(?:{_CHANGES})\s*\(")
    if module.maps:
        changes.append(rf"(?:{'|'.join(module.maps)})\s*(?=\[)")
    if not (names and changes):
        return None
    return re.compile(rf"(?<![\w.])(?P<what>(?:{'|'.join(names)})\s*\.\s*(?:{'|'.join(changes)}))")


def _callee(text: str, place: int, before: str) -> str:
    """Return the function in whose arguments a place is; `before`: the one whose arguments began above."""
    depth = 0
    for at in range(place - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth < 0:
            return str((re.findall(r"\w+", text[:at]) or [""])[-1])
    return before


def _open_call(text: str, before: str) -> str:
    """Return the function whose arguments are not closed at the end of a line; "" for none."""
    opened = [before] if before else []
    for match in re.finditer(r"(\w*)\s*\(|\)", text):
        if match[0].endswith("("):
            opened.append(match[1])
        elif opened:
            opened.pop()
    return opened[-1] if opened else ""


def iterations_of(functions: Sequence[CythonFunction], module: CythonModule) -> Iterator[Remark]:
    """Yield the unlocked loops over, and copies of, what an attribute holds, where methods change it."""
    safe = safe_functions(module.functions)
    for function in functions:
        if function.name in safe:
            continue
        given = {name for place, kind, name in function.typed if kind in {"dict", "set"} and function.inner
                 and _gets_attribute(function, place, module)}
        for number, text, held in function.lines:
            if held:
                continue
            for match in (*_LOOP.finditer(text), *_UNPACKED.finditer(text)):
                words = "".join(match["of"].split())
                attribute = words.removeprefix("self.") if function.method and words.startswith("self.") else (
                    function.kept.get(words, "") if function.method else "")
                if attribute in module.changing | module.of_cpp or words in given:
                    yield Remark(line=number, concern="no lock", what=f"for ... in {words}", instead=ITERATE)
            copied = _CONVERTED.search(text) if function.method else None
            if copied and (words := "".join(copied["of"].split())).removeprefix("self.") in module.of_cpp:
                yield Remark(line=number, concern="no lock", what=f"copies {words}", instead=ITERATE)


def _gets_attribute(function: CythonFunction, place: int, module: CythonModule) -> bool:
    """Return True if a call gives an attribute that changes for a parameter."""
    for by in module.functions:
        text = " ".join(line for _, line, _ in by.lines)
        for match in re.finditer(rf"\b{function.name}\s*\(", text):
            given = list(parts_of(text[match.end():]))
            at = place - (function.method and text[:match.start()].rstrip().endswith("."))
            found = re.match(r"\s*\w+\s*\.\s*(\w+)\s*\)?", given[at]) if 0 <= at < len(given) else None
            if found and found[1] in module.changing:
                return True
    return False


def lines_of_own_containers(functions: Sequence[CythonFunction], module: CythonModule) -> set[int]:
    """Return the lines whose risky calls are for a container that no other thread has, or that nobody changes."""
    found = set()
    for function in functions:
        for number, text, _ in function.lines:
            containers = [next(parts_of(text[match.end():].rstrip(")"))).strip() for match in RISKY_CALL.finditer(text)]
            if containers and all(_is_own_container(function, each, module) for each in containers):
                found.add(number)
    return found


def _is_own_container(function: CythonFunction, of: str, module: CythonModule) -> bool:
    """Return True for an attribute that keeps its value, or what the function or each of its callers has made."""
    if attribute := re.match(r"self\s*\.\s*(\w+)$", of):
        return function.method and attribute[1] in module.constant
    if not re.match(r"\w+$", of):
        return False
    values = values_of(function, of)
    place = next((at for at, each in enumerate(function.parameters) if re.search(rf"\b{of}\s*$", each)), -1)
    if place < 0:
        return bool(values) and all(_NEW_CONTAINER.match(each) for each in values)
    call = re.compile(rf"(?<![\w.]){function.name}\s*\(")
    given = [(by, list(parts_of(line[match.end():].rpartition(")")[0])))
             for by in module.functions for _, line, _ in by.lines for match in call.finditer(line)]
    return function.inner and not function.method and not values and bool(given) and all(
        len(each) > place and (got := values_of(by, each[place].strip())) and all(map(_NEW_CONTAINER.match, got))
        for by, each in given)
