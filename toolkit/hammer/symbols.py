"""Name the C or C++ function at an offset in an extension module: its symbol table has static functions, too.

Source: "Tool Interface Standard (TIS) Executable and Linking Format (ELF) Specification", version 1.2, with the 64-bit
structures of the System V ABI.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"\x7fELF\x02\x01"      # 64 bits, little-endian
SYMBOLS, FUNCTION = 2, 2        # SHT_SYMTAB, STT_FUNC
MOST_BYTES = 256 * 2**20        # of a file that is read
DEMANGLE_SECONDS = 20.0
_LAMBDA = re.compile(r"\bpybind11_init_(\w+)\(pybind11::module_&\)::\{lambda")
_ARGUMENTS = re.compile(r"<[^<>]*>")   # of a template
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class FunctionSymbol(NamedTuple):
    """A function's place in a file."""

    start: int
    size: int
    name: str


def function_at(path: str, offset: int) -> str:
    """Return the name of the function that has an instruction, "" if the file is stripped or no 64-bit ELF."""
    return next((each.name for each in functions(path) if each.start <= offset < each.start + each.size), "")


def readable(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of C++ functions as their source has them, "Route::visit", without arguments of templates.

    A lambda that pybind11 makes a function of has no name: that of its module is returned.

    The names of C functions, and all of them if the compiler's c++filt is not there, are returned as they are.
    """
    if not any(name.startswith("_Z") for name in names) or (program := shutil.which("c++filt")) is None:
        return tuple(names)
    try:
        ended = run([program, "-p", *names], timeout=DEMANGLE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return tuple(names)
    found = ended.stdout.splitlines() if ended.returncode == 0 else []
    return tuple(map(_without_arguments, found)) if len(found) == len(names) else tuple(names)


def _without_arguments(name: str) -> str:
    if found := _LAMBDA.search(name):
        return f"a lambda in PYBIND11_MODULE({found[1]})"
    shorter = _ARGUMENTS.sub("", name.partition(" [clone ")[0])
    return name if shorter == name else _without_arguments(shorter)


@lru_cache(maxsize=8)
def functions(path: str) -> tuple[FunctionSymbol, ...]:
    """Return the functions in a file's symbol table; none if it has no table or cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES)
        return tuple(_functions(data)) if data.startswith(MAGIC) else ()
    except (OSError, struct.error, IndexError, ValueError):   # as damaged as anything that a build leaves
        return ()


def _functions(data: bytes) -> Iterator[FunctionSymbol]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [*starmap(_Section, (_SECTION.unpack_from(data, start + number * size) for number in range(count)))]
    for section in sections:
        if section.kind != SYMBOLS:
            continue
        names = sections[section.link].offset
        for place in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, info, _, _, value, length = _SYMBOL.unpack_from(data, place)
            if info & 0xF == FUNCTION and length:
                yield FunctionSymbol(value, length, data[names + name:data.index(b"\0", names + name)].decode(
                    errors="replace"))
