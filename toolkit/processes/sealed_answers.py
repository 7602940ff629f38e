"""Exchange answers with processes that run other people's code: lines of JSON, each after a secret from the request.

Such code may print to every descriptor or replace `json.dumps`.  A line without the secret is noise, and one with it
that cannot be parsed is no answer; neither stops the reader.  This is no defence against code that looks for the
secret: it shares the process with it.

Runs in the builds that are measured: imports little.  Binds all functions at import, before other code replaces them.
"""

from __future__ import annotations

import json
import json.encoder
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def new_secret() -> str:
    """Return 32 random hexadecimal digits."""
    return os.urandom(16).hex()


def _refuse(value: object) -> None:
    raise TypeError(f"no JSON for a {type(value).__name__}")


_made: Any = json.encoder.c_make_encoder  # type: ignore[attr-defined]  # not in the stubs
# Runs entirely in C, so that Python code cannot replace any part of it.
_encode_parts = _made and _made(None, _refuse, json.encoder.encode_basestring_ascii,
                                None, ": ", ", ", False, False, True)  # noqa: FBT003  its own form
_decode = json.JSONDecoder().decode
_write_some, _join = os.write, "".join


def _encode(fields: dict[str, Any]) -> str:
    return _join(_encode_parts(fields, 0)) if _encode_parts else json.dumps(fields)


class Seal:
    """Marks and recognizes the lines that answer one request."""

    def __init__(self, secret: str) -> None:
        """Mark lines with the secret of the request."""
        self._mark = secret.encode()

    def line(self, fields: dict[str, Any]) -> bytes:
        """Return `fields` as a line with the secret in front."""
        return self._mark + _encode(fields).encode() + b"\n"

    def opened(self, line: bytes) -> dict[str, Any] | None:
        """Return the fields of a line; None if it lacks the secret or cannot be read.

        Other output without a line end may precede the secret.
        """
        _, mark, text = line.rpartition(self._mark)
        if not mark:
            return None
        try:
            fields = _decode(text.decode())
        except (ValueError, RecursionError):
            return None
        return fields if isinstance(fields, dict) else None


def write_all(handle: int, line: bytes) -> None:
    """Write the whole line to a descriptor.

    Raises:
        OSError: writing fails.
    """
    rest = memoryview(line)
    while rest:
        rest = rest[_write_some(handle, rest):]
