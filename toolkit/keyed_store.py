"""Values of earlier calls that are only kept to save time: each in a file of its own, found by its key.

Nothing depends on them.  A value that is missing, too old or damaged is made again, and a failure to write one is no
error.  What the key must contain, and how long a value is valid, is up to the caller.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from gilscope.toolkit.bounded_reading import RESULTS, read_text
from gilscope.toolkit.records import from_plain, plain_value


class KeyedStore:
    """The values in one folder."""

    def __init__(self, folder: Path) -> None:
        """Open the store in `folder`, which need not exist."""
        self.folder = folder

    def get(self, kind: Any, *key: str, most_age: float = math.inf) -> Any:
        """Return the value stored under a key; None if there is none, it is too old, or it is damaged.

        Args:
            kind: The type of the value, as `records.from_plain` reads it.
            key: Everything that the value depends on.
            most_age: The number of seconds after which it is no longer valid.
        """
        file = self._file(key)
        try:
            # Ignore times in the future: the clock was changed.
            if most_age < math.inf and not 0 <= time.time() - file.stat().st_mtime < most_age:
                return None
            return from_plain(kind, json.loads(read_text(file, RESULTS)), finite=False)
        except (OSError, ValueError, RecursionError):
            return None

    def put(self, value: object, *key: str) -> None:
        """Store a value that is plain or of dataclasses under a key; if writing fails, the old one is removed."""
        text, file = json.dumps(plain_value(value)), self._file(key)
        try:
            self._write(file, text)
        except OSError:
            with contextlib.suppress(OSError):
                file.unlink()

    def _write(self, file: Path, text: str) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another process may store the same key at the same time, so each writes a file of its own first.
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as fresh:
            part = Path(fresh.name)
            try:
                fresh.write(text)
                fresh.close()
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)

    def remove_older(self, seconds: float) -> None:
        """Remove the values that were stored more than `seconds` ago, and what interrupted calls have left."""
        for file in self.folder.glob("*"):
            with contextlib.suppress(OSError):
                if file.stat().st_mtime < time.time() - seconds:
                    file.unlink()

    def _file(self, key: tuple[str, ...]) -> Path:
        return self.folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"
