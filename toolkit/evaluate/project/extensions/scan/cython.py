"""What a source in Cython says of the GIL, and which state it shares between threads.

Source: "Free threading" and "Compiler directives" of Cython's documentation, 3.1 and later.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Remark
from gilscope.toolkit.evaluate.project.extensions.scan.cython_unlocked_writes import writes
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import code_of_python, judged_lines, line_of
from gilscope.toolkit.evaluate.project.extensions.scan.risky_calls import risky_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

GUARD = "cython.pymutex or cython.critical_section around what changes it"
# Of a file, in comments before its code; of the whole project, as arguments and settings of the compiler.
_DIRECTIVE = re.compile(r"^#\s*cython\s*:.*\bfreethreading_compatible\s*=\s*True\b", re.MULTILINE)
_EVERYWHERE = re.compile(r"freethreading_compatible['\"]?\s*[=:\]]+\s*['\"]?True", re.IGNORECASE)
_IN_C = re.compile(r"^#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_(\w+)", re.MULTILINE)
_VARIABLE = re.compile(r"^cdef\s+(?!(?:extern|class|struct|union|enum|packed|cppclass|inline|api)\b)"
                       r"((?:public\s+|readonly\s+)?[^\n(:#]+?)[ \t]*(?:=(?!=)[^\n]*)?$", re.MULTILINE)
_NUMBERS = re.compile(r"(?:readonly )?(?:(?:unsigned|signed|int|long|short|char|bint|float|double|s?size_t|Py_ssize_t|"
                      r"u?int\d+_t) )+(\w+)")
_GLOBAL = re.compile(r"^[ \t]+global[ \t]+(\w[\w, \t]*)$", re.MULTILINE)
_PARALLEL = re.compile(r"\bprange\s*\(")


def is_declared(text: str) -> bool:
    """Return whether a .pyx file says that its module does without the GIL."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")),
                 len(lines))
    return _DIRECTIVE.search("\n".join(lines[:first])) is not None


def is_declared_everywhere(configuration: str) -> bool:
    """Return whether a build's configuration gives that directive to what it compiles."""
    return _EVERYWHERE.search(configuration) is not None


def is_declared_in_c(text: str) -> bool:
    """Return whether C that Cython has made says so, unless a macro that nobody has set says otherwise."""
    found = _IN_C.findall(text)
    return bool(found) and found[-1] == "NOT_USED"


def remarks_of_cython(text: str, whole: str = "") -> Iterator[Remark]:
    """Yield what porting must look at in a .pyx file; `whole` is the code of all that may be one module with it."""
    code = code_of_python(text)
    everywhere = f"{code}\n{whole}"
    yield from risky_calls(code)
    yield from writes(code, judged_lines(text))
    for match in _VARIABLE.finditer(code):
        words = " ".join(match[1].split())
        if " " not in words or "const " in words or "pymutex" in words or _is_constant(match, words, everywhere):
            continue
        yield Remark(line=line_of(code, match.start()), concern="state", what=f"cdef {words}", instead=GUARD)
    for match in _GLOBAL.finditer(code):
        yield Remark(line=line_of(code, match.start(1)), concern="state", what=f"global {match[1].strip()}",
                     instead=GUARD)
    if "gil" in code:
        for match in _PARALLEL.finditer(code):
            yield Remark(line=line_of(code, match.start()), concern="no lock", what="prange",
                         instead="`with gil` inside of it is no lock any more: cython.pymutex")


def _is_constant(match: re.Match[str], words: str, code: str) -> bool:
    """Return whether a declaration is of one number that no function stores anew: by a `global`, or where it lies."""
    number = _NUMBERS.fullmatch(words)
    return number is not None and "," not in match[0] and not re.search(
        rf"^[ \t]+global\b[^\n]*\b{number[1]}\b|&\s*{number[1]}\b|\baddress\(\s*{number[1]}\b", code, re.MULTILINE)
