"""Find the structures of C of which no other thread can have one: every one is a local variable of some function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.project.extensions.c_tree import Unit

_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{")
_ALIASED = re.compile(r"\btypedef\s+struct(?:\s+(\w+))?\s*(?=\{)")
_ALIAS = re.compile(r"\s*(\w+)\s*;")
# Around a mention: a parameter `T *x`, a variable `T x`, the definition or declaration of the structure itself.
_GIVEN = re.compile(r"[(,]\s*(?:const\s+)?(?:struct\s+)?$")
_POINTER = re.compile(r"\s*(?:const\s*)?\*\s*(?:const\s+|restrict\s+)?\w+\s*[,)]")
# A parameter without a name, of a pointer to a function; the first one of a list could be a cast.
_GIVEN_UNNAMED = re.compile(r"(?:,|\)\s*\()\s*(?:const\s+)?(?:struct\s+)?$")
_UNNAMED = re.compile(r"\s*(?:const\s*)?\*\s*[,)]")
_VALUE = re.compile(r"\s+\w+\s*(?:\[[^\]]*\]\s*)?[;=]")
_BEFORE_VALUE = re.compile(r"(?:^|[;{}])\s*(?:struct\s+)?$")
_FILLED = re.compile(r"\bmem(?:set|cpy)\s*\([^;{}]*\bsizeof\s*\(?\s*(?:struct\s+)?$")
_LOOKED_BACK = 200   # characters
_NESTED = 4          # structures inside of each other


def local_types(units: Sequence[Unit]) -> frozenset[str]:
    """Return the names of the structures that exist only as local variables, and are given on by address.

    Others may have one that is allocated, cast to, a field, a global or static variable, or returned.
    """
    codes = [unit.source.code for unit in units]
    families = [names for code in codes for names in _declared(code)]
    kept = {kind for unit in units for kind in _kept(unit)}
    fields = [(owner, kind) for unit in units for owner, types in unit.fields.items() for kind in types.values()]
    found: set[str] = set()
    # A field of such a structure is as private as that one, and is found in a later turn.
    for _ in range(_NESTED):
        used = {name for name in found if any(_is_variable(*_around(code, match)) for code in codes
                                              for match in re.finditer(rf"\b{name}\b", code))}
        outlives = {*kept, *(kind for owner, kind in fields if owner not in used)}
        more = {name for names in families if not names <= found and _is_local(names, codes, outlives)
                for name in names}
        if not more:
            break
        found |= more
    return frozenset(found)


def _is_local(names: set[str], codes: Sequence[str], outlives: set[str]) -> bool:
    """Return True if nothing that outlives a call has one of the type, and no mention gives somebody else one."""
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    return not any(words.search(each) for each in outlives) and all(
        _is_harmless(*_around(code, match)) for code in codes for match in words.finditer(code))


def _kept(unit: Unit) -> Iterator[str]:
    """Yield the types of what outlives a call, but for fields: global and static variables."""
    yield from (each.type for each in unit.shared.values())
    yield from (each.type for function in unit.functions for each in function.locals.values() if each.static)


def _declared(code: str) -> Iterator[set[str]]:
    """Yield the names of each structure: its tag and its alias."""
    for match in _ALIASED.finditer(code):
        end = _closing(code, match.end())
        alias = _ALIAS.match(code, end) if end else None
        if alias is not None:
            yield {name for name in (match[1], alias[1]) if name}
    for match in _STRUCT.finditer(code):
        if not code[:match.start()].rstrip().endswith("typedef"):
            yield {match[1]}


def _closing(code: str, start: int) -> int:
    """Return the offset after the brace that closes the one at `start`; 0 if none does."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.end()
    return 0


def _around(code: str, mention: re.Match[str]) -> tuple[str, str]:
    """Return the code before and after a mention of a type."""
    start, end = mention.span()
    return code[max(0, start - _LOOKED_BACK):start], code[end:end + _LOOKED_BACK]


def _is_harmless(before: str, after: str) -> bool:
    """Return True if a mention of a type between these gives nobody else one of it."""
    if re.search(r"\bstruct\s+$", before) and re.match(r"\s*[{;]", after):
        return True   # its definition, or a declaration before it
    if re.search(r"\}\s*$", before) and re.match(r"\s*;", after):
        return True   # the alias at the end of its definition
    if re.search(r"\btypedef\s+struct\s+(?:\w+\s+)?$", before):
        return True
    given = (_GIVEN.search(before) and _POINTER.match(after)) or (
        _GIVEN_UNNAMED.search(before) and _UNNAMED.match(after))
    if given or _FILLED.search(before):
        return True
    return _is_variable(before, after)


def _is_variable(before: str, after: str) -> bool:
    """Return True if a mention of a type between these declares a variable."""
    return bool(_BEFORE_VALUE.search(before) and _VALUE.match(after))
