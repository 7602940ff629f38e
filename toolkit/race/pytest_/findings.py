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

    def add(self, base: str, test: str) -> bool:
        """Add that a test has the finding on a variable; return False if this process has added that before."""
        if (base, test) in self._added:
            return False
        self._added.add((base, test))
        with suppress(OSError):    # a full disk or a lost folder, which the report mentions
            append(self._path, json.dumps([base, test]).encode() + b"\n")
        return True

    def number(self, base: str, test: str) -> tuple[int, bool]:
        """Return the number of a finding that a test has, and whether it was the first test to have it.

        Each process of xdist may be told so, if it has that test: those collect alike.
        """
        tests = self.tests()
        tests.setdefault(base, [test])    # where it could not be appended
        return [*tests].index(base) + 1, tests[base][0] == test

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
