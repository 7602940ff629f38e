"""Reading files that others may have written: up to a known size, or not at all.

A pipe under the name of a settings file would be waited for without end, and /dev/zero would fill the memory.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import io
    from pathlib import Path

MIB = 2**20
SETTINGS = 16 * MIB   # what people and tools write for a project: settings, locks, suppressions; run.json
LAST_BYTES = 8192
LAST_LINES = 80  # a worker's traceback stands before the one of the process that waited for it
RESULTS = 256 * MIB   # values of one build, a thousand rounds of a hundred cells among them


def opened(path: Path) -> io.BufferedReader:
    """Return the regular file `path`, opened to be read.

    Raises:
        OSError: it is missing, cannot be read, or is no regular file; `strerror` says so.
    """
    try:
        # Else to open a pipe would wait for who writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            error.strerror = "it is a link that leads back to itself"
        raise
    except ValueError:
        raise OSError(errno.EINVAL, "its name has a null byte", str(path)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, most: int = SETTINGS) -> bytes:
    """Return the content of the regular file `path`.

    Raises:
        OSError: as `opened`, or it is larger than `most` bytes; `strerror` says so.
    """
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most // MIB} MiB, and no more is read", str(path))
    return content


def read_text(path: Path, most: int = SETTINGS) -> str:
    """Return the text of the regular file `path`, which is UTF-8.

    Raises:
        OSError: as `read_bytes`.
        UnicodeDecodeError: it holds something else.
    """
    return read_bytes(path, most).decode("utf-8")


def last_text(path: Path, most: int) -> str:
    """Return the end of the regular file `path`, which may be large, be cut anywhere, or not be text.

    Raises:
        OSError: as `opened`.
    """
    with opened(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode(errors="replace")


def last_lines(path: Path) -> str:
    """Return the last lines of a file that may be large, be cut anywhere, or not be text; "" if it cannot be read."""
    try:
        return "\n".join(last_text(path, LAST_BYTES).splitlines()[-LAST_LINES:])
    except OSError:
        return ""


def parse_json(text: str) -> Any:
    """Parse the JSON document `text`, whose numbers must be finite, as other programs write them.

    Raises:
        ValueError: it is no JSON, says NaN or Infinity, or is nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
