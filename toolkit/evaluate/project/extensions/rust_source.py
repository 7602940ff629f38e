"""Scan Rust sources that use PyO3: the declaration about the GIL, shared state, and risky calls.

Source: "Supporting Free-Threaded CPython" of PyO3's guide, and its migration guide (0.23, 0.28).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.own_extensions import Remark
from gilscope.toolkit.evaluate.project.extensions.source_text import (
    code_of_rust,
    line_of,
    risky_calls,
    suppressions_of_rust,
    without_accepted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARES_BY_DEFAULT = (0, 28)   # since this version of PyO3 a module needs no GIL unless it declares that it does
_MODULE = re.compile(r"#\[\s*(?:pyo3::)?pymodule\b([^\]]*)\]")
_USED = re.compile(r"\bgil_used\s*=\s*(true|false)")
# Statics are `Sync`; these kinds are mutable nevertheless.
_STATIC = re.compile(r"\bstatic\s+(mut\s+\w+|(?:ref\s+)?\w+\s*:\s*[^=;]*"
                     r"\b(?:GILOnceCell|GILProtected|UnsafeCell|RefCell|SyncUnsafeCell)\b)")
_RISKY_PATTERNS = (
    (re.compile(r"\bGILProtected\b"), "GILProtected",
     "std::sync::Mutex: GILProtected does not exist on free-threaded builds"),
    (re.compile(r"\bunsafe\s+impl\b[^{;]*\bSync\b"), "unsafe impl Sync",
     "make sure that it is without the GIL: two threads may now use the value at once"),
    (re.compile(r"#\[\s*(?:pyo3::)?pyclass\s*\([^\]]*\bunsendable\b"), "pyclass(unsendable)",
     "another thread that uses such an object gets an exception"),
)


def module_line(code: str) -> int:
    """Return the line that defines a module, in code without comments and strings; 0 if none does."""
    found = _MODULE.search(code)
    return line_of(code, found.start()) if found else 0


def is_declared(code: str, pyo3: tuple[int, int] | None) -> bool:
    """Return True if the module can run without the GIL, by its own declaration or by the required PyO3 version."""
    found = _MODULE.search(code)
    declared = _USED.search(found[1]) if found else None
    if declared:
        return declared[1] == "false"
    return pyo3 is not None and pyo3 >= DECLARES_BY_DEFAULT


def remarks_of_rust(text: str) -> Iterator[Remark]:
    """Yield porting remarks for Rust source, except on lines whose comments give reasons."""
    yield from without_accepted(_remarks(code_of_rust(text)), suppressions_of_rust(text))


def _remarks(code: str) -> Iterator[Remark]:
    yield from risky_calls(code)
    for match in _STATIC.finditer(code):
        yield Remark(line=line_of(code, match.start()), concern="state", what=" ".join(match[0].split()),
                     instead="a Mutex, an atomic, or PyOnceLock")
    for pattern, what, instead in _RISKY_PATTERNS:
        for match in pattern.finditer(code):
            if not re.match(r"[^\n]*\bstatic\b", code[code.rfind("\n", 0, match.start()) + 1:match.start() + 1]):
                yield Remark(line=line_of(code, match.start()), concern="state", what=what, instead=instead)
