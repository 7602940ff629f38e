"""The records of checked processes: one file per process, in a folder that all processes of a run share.

Every record is one line of JSON and is written at once, so a crash, `os._exit`, a kill or a fork loses nothing.  The
file is opened and closed for each line: if a program closed all descriptors and opened its own, our lines would end up
in its files.  The writing half runs in the checked program: it takes no lock, calls nothing that the program could have
replaced, and imports no json.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    Plain = str | int | float | bool | None | list["Plain"] | tuple["Plain", ...] | dict[str, "Plain"]

try:
    from _json import encode_basestring_ascii as _quoted
except ImportError:   # a Python without the accelerator
    from json.encoder import encode_basestring_ascii as _quoted

# Bound now, because a checked program's tests may replace them in `os`.
_open, _write, _close, _getpid, _now = os.open, os.write, os.close, os.getpid, time.time_ns
_rename, _mkdir = os.rename, os.mkdir
# The program may have put a pipe or a link there; do not wait for the one or follow the other.
_AS_IT_IS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _AS_IT_IS
SUFFIX = ".jsonl"
MARK = ".lost"        # before the suffix of a file that lacks a record
LONGEST = 2**24       # bytes in a line; ours have a few thousand
MOST_DAMAGED = 100    # lines of a file, after which the rest is not read


class Spool:
    """One process's file in `folder`; a forked child gets its own."""

    def __init__(self, folder: str, header: dict[str, Plain]) -> None:
        self._folder = os.path.abspath(folder)
        self._header = header
        self._paths: dict[int, str] = {}     # by process id: of this process and those that it was forked from

    def write(self, record: dict[str, Plain]) -> None:
        """Append one record.  If that fails, as on a full disk, the program goes on, and the report mentions it."""
        pid = _getpid()
        try:
            self._append(self._paths.get(pid) or self._begin(pid), record)
        except OSError:
            self._mark(pid)

    def _mark(self, pid: int) -> None:
        """Mark the file as lacking a record, by its name: renaming needs neither disk space nor a descriptor."""
        path = self._paths[pid]
        marked = path.removesuffix(SUFFIX).removesuffix(MARK) + MARK + SUFFIX
        try:
            _rename(path, marked)
            self._paths[pid] = marked
        except OSError:   # the file was never made
            _make(marked)

    def _begin(self, pid: int) -> str:
        # A process id may be reused within one run, and several threads may be here at once.
        own = f"{self._folder}{os.sep}{pid}-{_now():x}{SUFFIX}"
        parent = _name(next(reversed(self._paths.values()), ""))
        path = self._paths.setdefault(pid, own)
        if path is own:
            self._append(path, {"t": "process", "pid": pid, "parent": parent, **self._header})
        return path

    def _append(self, path: str, record: dict[str, Plain]) -> None:
        append(path, dumps(record).encode("ascii") + b"\n")


def _name(path: str) -> str:
    """Return the name of a process's file, which stays the same if the file is marked."""
    return os.path.basename(path).removesuffix(SUFFIX).removesuffix(MARK)


def mark_lost(folder: str) -> None:
    """Mark that a record of this process is lost."""
    _make(os.path.join(folder, f"{_getpid()}-{_now():x}{MARK}{SUFFIX}"))


def _make(marked: str) -> None:
    try:
        _mkdir(marked)
    except OSError:
        return   # the folder is gone, which shows the loss too, or the mark exists


def append(path: str, line: bytes) -> None:
    """Append one line to a file that is not kept open.

    Raises:
        OSError: the folder is gone, the disk is full, or the program has put something else there.
    """
    descriptor = _open(path, _FLAGS, 0o644)
    try:
        # One call per line, so lines of several threads do not mix.
        if _write(descriptor, line) < len(line):
            raise OSError("there is room for a part of it")
    finally:
        _close(descriptor)


def dumps(value: Plain) -> str:
    """Return `value` as JSON in ASCII; only exact builtin types, so that no code of the program runs."""
    if type(value) is str:
        return _quoted(value)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int or type(value) is float:
        return repr(value)
    if type(value) is dict:
        return "{" + ", ".join([f"{_quoted(key)}: {dumps(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumps(item) for item in value]) + "]"
    raise AssertionError(f"no plain value: {type(value)}")


class Reader:
    """Reads the files of all processes, each line once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}      # bytes of each file
        self._damaged: dict[str, int] = {}   # lines of each file

    def read(self) -> Iterator[tuple[str, Plain]]:
        """Yield file and value of each line that was written since the last time, files in the order of their names.

        The value is None for a line that is not JSON or too long, and for a file that is damaged or lacks a record: the
        program may have put anything there, and the disk may have been full.
        """
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(SUFFIX))
        except OSError:   # the program has removed it
            yield "", None
            return
        for name in names:
            own = _name(name)
            if name.endswith(MARK + SUFFIX):
                yield own, None
            for value in self._values(own, os.path.join(self._folder, name)):
                yield own, value

    def _values(self, own: str, path: str) -> Iterator[Plain]:
        import json

        if (lines := opened(path)) is None:
            yield None
            return
        with lines:
            lines.seek(self._read.get(own, 0))
            while (line := lines.readline(LONGEST)) and self._damaged.get(own, 0) < MOST_DAMAGED:
                self._read[own] = lines.tell()
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError):
                    value = None
                self._damaged[own] = self._damaged.get(own, 0) + (value is None)
                yield value


def process_of(file: str) -> str:
    """Return the name of the process that has written a file; "" stands for all files."""
    return f"process {file.partition('-')[0]}" if file else "every process"


def has_content(path: str) -> bool:
    """Return True if a process's file has more than its header, or lacks a record."""
    if path.endswith(MARK + SUFFIX) or (lines := opened(path)) is None:
        return True
    with lines:
        return bool(lines.readline(LONGEST) and lines.readline(LONGEST))


def opened(path: str) -> BinaryIO | None:
    """Return a process's file, opened for reading, or None if something else has its name."""
    try:
        descriptor = _open(path, os.O_RDONLY | _AS_IT_IS)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        _close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")
