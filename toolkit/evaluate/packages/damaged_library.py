"""Whether a file is a whole shared library, by its headers alone: nothing is loaded."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from gilscope.toolkit.bounded_reading import opened

if TYPE_CHECKING:
    from pathlib import Path

_MACH_O = {bytes.fromhex(magic) for magic in ("feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "bebafeca")}
# Where the tables of an ELF file stand in its header: offset of programs and of sections, size and count of each.
_HEADER = {1: "4xII4x2xHHHH", 2: "8xQQ4x2xHHHH"}   # from e_entry on, for 32 and 64 bits
_LOADED = {1: "IIIII", 2: "I4xQ16xQ"}              # of a program header: type, offset, ..., size in the file
_PT_LOAD = 1


def damage(path: Path) -> str:
    """Return why a file is no whole shared library, "" for one that is, as far as its headers say.

    Source: System V ABI, chapter 4 (object files); elf(5).
    """
    try:
        size = path.stat().st_size
        with opened(path) as file:
            start = file.read(64)
            if start[:4] in _MACH_O:
                return ""
            if start[:4] != b"\x7fELF":
                return "its file is empty" if not size else "its file is no shared library"
            whole = _end(file, start)
    except OSError as error:
        return f"its file cannot be read: {error.strerror}"
    except (struct.error, KeyError, IndexError):
        return "its file is cut off or damaged: its headers make no sense"
    return f"its file is cut off: {size} bytes of {whole}" if whole > size else ""


def _end(file: BinaryIO, start: bytes) -> int:
    """Return where an ELF file ends at the earliest, by its tables and what is loaded of it."""
    kind, order = start[4], "<" if start[5] == 1 else ">"
    numbers: tuple[int, ...] = struct.unpack_from(order + _HEADER[kind], start, 24)
    programs, sections, program_size, program_count, section_size, section_count = numbers
    file.seek(programs)
    table = file.read(program_size * program_count)
    end = max(programs + program_size * program_count, sections + section_size * section_count if sections else 0)
    for number in range(program_count):
        entry: tuple[int, ...] = struct.unpack_from(order + _LOADED[kind], table, number * program_size)
        if entry[0] == _PT_LOAD:
            end = max(end, entry[1] + entry[-1])
    return end
