"""Files that somebody else may have put there: read to an end that is known, or not at all.

A pipe under the name of a settings file would be waited for without end, and /dev/zero would fill the memory.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
SETTINGS = 16 * MIB   # what people and tools write for a project: settings, locks, suppressions; run.json
RESULTS = 256 * MIB   # values of one build, a thousand rounds of a hundred cells among them


def read_bytes(path: Path, most: int = SETTINGS) -> bytes:
    """Return what the regular file `path` holds.

    Raises:
        OSError: it is missing, cannot be read, is no regular file, or is larger than `most` bytes; `strerror` says so.
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
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
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


def parse_json(text: str) -> Any:
    """Return what the JSON document `text` holds: finite numbers only, as other programs write it.

    Raises:
        ValueError: it is no JSON, says NaN or Infinity, or has more floors than can be read.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
