"""The findings of a session, numbered in the order in which tests had them: a file that all its processes append to."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from gilscope.toolkit.race.spool import append, opened

FILE = "findings"      # no suffix: it is none of the records


class FindingLog:
    """The log of who found what, in the spool folder."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE)
        self._added: set[tuple[str, str]] = set()      # variables and tests, by this process

    def add(self, base: str, test: str) -> tuple[int, bool]:
        """Add that a test has the finding on a variable; return its number, and whether that is news.

        It is for the first test that has it, once for each process: those of xdist have to collect alike.
        """
        is_new = (base, test) not in self._added
        if is_new:
            self._added.add((base, test))
            with suppress(OSError):    # a full disk or a lost folder, which the report mentions
                append(self._path, json.dumps([base, test]).encode() + b"\n")
        entries = [*self._entries(), (base, test)]
        firsts = dict(reversed(entries))
        return list(dict.fromkeys(each for each, _ in entries)).index(base) + 1, is_new and firsts[base] == test

    def tests(self) -> dict[str, list[str]]:
        """Return the tests that had each finding, by its variable, in the order of their numbers."""
        found: dict[str, dict[str, None]] = {}
        for base, test in self._entries():
            found.setdefault(base, {})[test] = None
        return {base: [*tests] for base, tests in found.items()}

    def _entries(self) -> list[tuple[str, str]]:
        if (file := opened(self._path)) is None:
            return []
        with file:
            return [(base, test) for base, test in map(json.loads, file)]
