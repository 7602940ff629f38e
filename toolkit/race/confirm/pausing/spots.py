"""The sites of the program in a confirming run, and what each thread touched last."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections import deque

from gilscope.toolkit.race.confirm.plan import READS, WRITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.confirm.pausing.line_events import Lines
    from gilscope.toolkit.race.confirm.pausing.watch import Watcher

OURS = __file__.rpartition("confirm")[0]     # the folder of the race checker
REMEMBERED = 16       # accesses of a thread that a getter's or setter's caller may look back on


class Spot:
    """A site of the rewritten program, with the watchers of the races that have a place there."""

    __slots__ = ("_lines", "key", "watchers")

    def __init__(self, key: str, watchers: Sequence[tuple[Watcher, int]], lines: Lines) -> None:
        self.key = key
        self.watchers = watchers
        self._lines = lines

    def arrive(self, owner: Any, key: Any) -> None:
        """Be about to access."""
        for watcher, roles in self.watchers:
            watcher.arrive((owner, key), roles)

    def read(self, owner: Any, key: Any) -> None:
        """Have read."""
        for watcher, roles in self.watchers:
            if roles & READS and not roles & WRITES:
                self._lines.follow(_program_code(), watcher)
            watcher.read((owner, key), roles)

    def write(self, owner: Any, key: Any) -> None:
        """Be about to write."""
        for watcher, roles in self.watchers:
            watcher.arrive((owner, key), roles & ~READS)
            watcher.before_write((owner, key), roles)

    def wrote(self, owner: Any, key: Any) -> None:
        """Have written."""
        for watcher, roles in self.watchers:
            watcher.wrote((owner, key), roles)


class Recent:
    """What each thread accessed last: callers of getters and setters ask what those touched."""

    def __init__(self) -> None:
        self.wanted = False
        self._counts: dict[int, int] = {}
        self._last: dict[int, deque[tuple[int, bool, Any, Any]]] = {}

    def read(self, owner: Any, key: Any) -> None:
        """Remember that this thread has read."""
        self._add(owner, key, wrote=False)

    def wrote(self, owner: Any, key: Any) -> None:
        """Remember that this thread has written."""
        self._add(owner, key, wrote=True)

    def _add(self, owner: Any, key: Any, *, wrote: bool) -> None:
        if self.wanted:
            me = get_ident()
            count = self._counts[me] = self._counts.get(me, 0) + 1
            self._last.setdefault(me, deque(maxlen=REMEMBERED)).append((count, wrote, owner, key))

    def position(self) -> int:
        """Return how many accesses this thread has made."""
        return self._counts.get(get_ident(), 0)

    def since(self, position: int, *, wrote: bool) -> list[tuple[Any, Any]]:
        """Return the locations that this thread read (wrote) after `position`."""
        found = self._last.get(get_ident(), ())
        return [(owner, key) for count, write, owner, key in found if count > position and write == wrote]


def _program_code() -> CodeType:
    """Return the code of the function that an op was called from."""
    frame = sys._getframe(1)  # noqa: SLF001  the only way to the caller
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame.f_code
