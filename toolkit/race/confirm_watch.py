"""Hold a thread at a race's place until another comes by, and see what comes of it.

A `Watcher` is one race in a confirming run.  It is told of arrivals, reads and writes at the race's places, each with
the location (owner and key), and decides who waits.  Whoever waits is let go as soon as another thread has done what
was waited for, so a confirmation costs little; a wait that nobody ends costs `PAUSES`.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident

from toolkit.race.confirm_plan import CHANGED, FIRST, LOST, MET, READS, SECOND, WRITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Location = tuple[Any, Any]      # the owner itself, so that its id stays its own, and the key; ANY for all keys

PAUSES = (0.005, 0.02, 0.05, 0.01, 0.035)   # seconds, by try: which one fits depends on the program
MOST_LINES = 4          # that a span waits at
MOST_PAUSES = 40        # of one race in one run: a place in a loop must not make it endless


class Any_:  # noqa: N801  stands for any key
    """The type of ANY."""


ANY = Any_()


class Wait:
    """One thread that waits at a place."""

    def __init__(self, location: Location, roles: int) -> None:
        self.thread = get_ident()
        self.location = location
        self.roles = roles
        self.over = allocate_lock()
        self.over.acquire()


class Span:
    """What a thread has read and means to write, or is iterating over."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.overtaken = 0
        self.lines = 0      # waits before one of them


class Watcher:
    """One race of the first run.

    Args:
        question: What would confirm it: LOST, MET or CHANGED.
        pause: How long a thread waits, in seconds.
        tell: Called with each confirmation.
    """

    def __init__(self, question: str, pause: float, tell: Callable[[], None]) -> None:
        self.question = question
        self.pause = pause
        self.tell = tell
        self._left = MOST_PAUSES
        self._mutex = allocate_lock()
        self._waits: list[Wait] = []
        self._spans: dict[int, Span] = {}

    def arrive(self, location: Location, roles: int) -> None:
        """Be about to access the location; wait there for the race's other place when the question is MET."""
        if self.question != MET or not roles & (FIRST | SECOND):
            return
        with self._mutex:
            other = self._waiting(location, roles)
            if other is not None:
                self._waits.remove(other)
                other.over.release()
                self.tell()
                return
        self._wait(location, roles)

    def read(self, location: Location, roles: int) -> None:
        """Have read what a later write of this thread depends on; wait for another thread's write."""
        if self.question == LOST and roles & READS:
            self._spans[get_ident()] = Span(location)
            self._wait_for_a_write()

    def linger(self) -> None:
        """Be somewhere between a read and the write that depends on it; wait likewise."""
        span = self._spans.get(get_ident())
        if span is not None and span.lines < MOST_LINES:   # its write may never come
            span.lines += 1
            self._wait_for_a_write()

    def begin(self, location: Location) -> None:
        """Iterate over the owner from here on."""
        self._spans[get_ident()] = Span(location)

    def end(self) -> None:
        """Iterate no more."""
        self._spans.pop(get_ident(), None)

    def before_write(self, location: Location, roles: int) -> None:
        """Be about to write; wait for another thread's write when this one ends a span."""
        own = self._spans.get(get_ident())
        if self.question == LOST and roles & WRITES and own is not None and same(own.location, location):
            self._wait_for_a_write()

    def wrote(self, location: Location, roles: int) -> None:
        """Have written: other threads' spans over the location have missed it."""
        if not roles & WRITES:
            return
        me = get_ident()
        with self._mutex:
            for thread, span in list(self._spans.items()):
                if thread != me and same(span.location, location):
                    span.overtaken += 1
                    if self.question == CHANGED:
                        self.tell()
            own = self._spans.get(me)
            if own is not None and self.question == LOST and same(own.location, location):
                del self._spans[me]
                for _ in range(own.overtaken):
                    self.tell()
            for wait in [each for each in self._waits if each.thread != me and same(each.location, location)]:
                if wait.roles == 0:   # it waits for a write
                    self._waits.remove(wait)
                    wait.over.release()

    def _wait_for_a_write(self) -> None:
        span = self._spans.get(get_ident())
        if span is None or span.overtaken:
            return
        with self._mutex:
            # Whoever comes second goes on: of two that wait for each other none would write.
            if any(wait.thread != get_ident() and same(wait.location, span.location) for wait in self._waits):
                return
        self._wait(span.location, 0)

    def iterating(self) -> None:
        """Be between two items."""
        self._wait_for_a_write()

    def _waiting(self, location: Location, roles: int) -> Wait | None:
        """Return the thread that waits at the other place, for the same location."""
        other = (SECOND if roles & FIRST else 0) | (FIRST if roles & SECOND else 0)
        return next((wait for wait in self._waits if wait.thread != get_ident() and wait.roles & other
                     and same(wait.location, location)), None)

    def _wait(self, location: Location, roles: int) -> None:
        with self._mutex:
            if self._left <= 0:
                return
            self._left -= 1
            wait = Wait(location, roles)
            self._waits.append(wait)
        ended = wait.over.acquire(timeout=self.pause)
        if not ended:
            with self._mutex:
                if wait in self._waits:
                    self._waits.remove(wait)


def same(one: Location, other: Location) -> bool:
    """Return whether two locations may be one."""
    return one[0] is other[0] and (one[1] is ANY or other[1] is ANY or _equal(one[1], other[1]))


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001  the program's keys; whatever they do, the run goes on
        return False
