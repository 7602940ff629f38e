"""Calls of the C API that were safe by the GIL alone, and what stands in for them.

Source: "C API Extension Support for Free Threading" of CPython's documentation, 3.14 and 3.15: borrowed references,
container thread safety, memory allocation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.evaluate.project.extensions.facts import Concern

# What gives a reference that another thread can take away: name -> what gives one of its own.
BORROWED = {
    "PyList_GetItem": "PyList_GetItemRef", "PyList_GET_ITEM": "PyList_GetItemRef",
    "PyDict_GetItem": "PyDict_GetItemRef", "PyDict_GetItemWithError": "PyDict_GetItemRef",
    "_PyDict_GetItemWithError": "PyDict_GetItemRef", "_PyDict_GetItemStringWithError": "PyDict_GetItemStringRef",
    "PyDict_GetItemString": "PyDict_GetItemStringRef", "PyDict_SetDefault": "PyDict_SetDefaultRef",
    "PyWeakref_GetObject": "PyWeakref_GetRef", "PyWeakref_GET_OBJECT": "PyWeakref_GetRef",
    "PyImport_AddModule": "PyImport_AddModuleRef", "PyImport_AddModuleObject": "PyImport_AddModuleRef",
    "PyCell_GET": "PyCell_Get",
}
CRITICAL = "Py_BEGIN_CRITICAL_SECTION around it, where others may change the object"
UNLOCKED = {
    "PyDict_Next": "Py_BEGIN_CRITICAL_SECTION around the loop",
    "_PyDict_Next": "Py_BEGIN_CRITICAL_SECTION around the loop",
    "PyList_SET_ITEM": "PyList_SetItem, unless the list is new and nobody else has it",
    "PySequence_Fast_GET_ITEM": CRITICAL, "PySequence_Fast_GET_SIZE": CRITICAL, "PySequence_Fast_ITEMS": CRITICAL,
}
MEMORY = "PyMem_{}, unless it is for a Python object"
ALLOCATING = {f"PyObject_{name}": MEMORY.format(name.capitalize()) for name in (
    "Malloc", "MALLOC", "Calloc", "Realloc", "REALLOC")}
_KINDS: tuple[tuple[dict[str, str], Concern], ...] = (
    (BORROWED, "borrowed reference"), (UNLOCKED, "no lock"), (ALLOCATING, "allocation"))
_TABLE = {name: (concern, instead) for table, concern in _KINDS for name, instead in table.items()}
_CALL = re.compile(rf"\b({'|'.join(sorted(map(re.escape, _TABLE), key=len, reverse=True))})\s*\(")


def risky_calls(code: str, held: Callable[[int], bool] = lambda _: False) -> Iterator[Remark]:
    """Yield each of these calls in code without comments and strings, in C, C++, Cython or Rust.

    What wants a lock is fine at a place where one is `held`.
    """
    line, seen = 1, 0
    for match in _CALL.finditer(code):
        line += code.count("\n", seen, match.start())
        seen = match.start()
        concern, instead = _TABLE[match[1]]
        if concern != "no lock" or not held(match.start()):
            yield Remark(line=line, concern=concern, what=match[1], instead=instead)
