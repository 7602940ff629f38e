"""What a source in Rust with PyO3 says of the GIL, and which state it shares between threads.

Source: "Supporting Free-Threaded CPython" of PyO3's guide, and its migration guide (0.23, 0.28).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Remark
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import code_of_rust, line_of
from gilscope.toolkit.evaluate.project.extensions.scan.risky_calls import risky_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARED_BY_ITSELF = (0, 28)   # of PyO3: since then a module does without unless it says otherwise
_MODULE = re.compile(r"#\[\s*(?:pyo3::)?pymodule\b([^\]]*)\]")
_USED = re.compile(r"\bgil_used\s*=\s*(true|false)")
# A static is `Sync`; these can change all the same.
_STATIC = re.compile(r"\bstatic\s+(mut\s+\w+|(?:ref\s+)?\w+\s*:\s*[^=;]*"
                     r"\b(?:GILOnceCell|GILProtected|UnsafeCell|RefCell|SyncUnsafeCell)\b)")
_OTHERS = (
    (re.compile(r"\bGILProtected\b"), "GILProtected", "std::sync::Mutex: it is not there on free-threaded builds"),
    (re.compile(r"\bunsafe\s+impl\b[^{;]*\bSync\b"), "unsafe impl Sync",
     "make sure that it is, without the GIL: what was behind it may be used by two threads at once"),
    (re.compile(r"#\[\s*(?:pyo3::)?pyclass\s*\([^\]]*\bunsendable\b"), "pyclass(unsendable)",
     "another thread that uses such an object gets an exception"),
)


def place_of_module(code: str) -> int:
    """Return the line that makes a module, in code without comments and strings; 0 where none does."""
    found = _MODULE.search(code)
    return line_of(code, found.start()) if found else 0


def is_declared(code: str, pyo3: tuple[int, int] | None) -> bool:
    """Return whether the code's module does without the GIL, by what it says and by the PyO3 that it asks for."""
    found = _MODULE.search(code)
    said = _USED.search(found[1]) if found else None
    if said:
        return said[1] == "false"
    return pyo3 is not None and pyo3 >= DECLARED_BY_ITSELF


def remarks_of_rust(text: str) -> Iterator[Remark]:
    """Yield what porting must look at in a source of Rust."""
    code = code_of_rust(text)
    yield from risky_calls(code)
    for match in _STATIC.finditer(code):
        yield Remark(line=line_of(code, match.start()), concern="state", what=" ".join(match[0].split()),
                     instead="a Mutex, an atomic, or PyOnceLock")
    for pattern, what, instead in _OTHERS:
        for match in pattern.finditer(code):
            if not re.match(r"[^\n]*\bstatic\b", code[code.rfind("\n", 0, match.start()) + 1:match.start() + 1]):
                yield Remark(line=line_of(code, match.start()), concern="state", what=what, instead=instead)
