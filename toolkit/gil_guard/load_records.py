"""Read what the processes of a test run recorded of the extension modules that they loaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleLoad:
    """An extension module that a process loaded."""

    pid: int
    module: str
    file: str
    chain: tuple[tuple[str, int], ...]   # file and line of the frames behind the import, innermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class GilFlip:
    """An extension module that turned the GIL on in a process."""

    pid: int
    module: str
    thread: str                # the name of the thread that imported it; "" for the main thread
    load: ModuleLoad | None    # None: its record is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecords:
    """All records of a test run, or those of one part of it."""

    loads: tuple[ModuleLoad, ...] = ()
    flips: tuple[GilFlip, ...] = ()
    ends: tuple[bool, ...] = ()    # for each process that came to its end: was the GIL on?


def read_records(path: Path, skip: int = 0) -> LoadRecords:
    """Return the records in a file without its first `skip` bytes; none if a test has removed or overwritten it."""
    try:
        return parse_records(read_bytes(path)[skip:].splitlines())
    except OSError:
        return LoadRecords()


def parse_records(lines: Iterable[bytes]) -> LoadRecords:
    """Return the records in those lines, of which the last may be cut off; none if they are something else."""
    loads: dict[tuple[int, str], ModuleLoad] = {}
    flips: list[GilFlip] = []
    ends: list[bool] = []
    try:
        for record in (json.loads(line) for line in lines if line.endswith(b"}")):
            pid = int(record.get("pid", 0))
            if "load" in record:
                load = ModuleLoad(pid=pid, module=str(record["load"]), file=str(record.get("file", "")),
                                  chain=tuple((str(file), int(line)) for file, line in record["chain"]))
                loads.setdefault((pid, load.module), load)
            elif "flip" in record:
                module = str(record["flip"])
                flips.append(GilFlip(pid=pid, module=module, thread=str(record.get("thread", "")),
                                     load=loads.get((pid, module))))
            elif "gil" in record:
                ends.append(bool(record["gil"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        return LoadRecords()
    return LoadRecords(loads=tuple(loads.values()), flips=tuple(flips), ends=tuple(ends))
