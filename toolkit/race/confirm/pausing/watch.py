"""Hold a thread at a race's place until another comes by, and see what comes of it.

A `Watcher` is one race in a confirming run.  It is told of arrivals, reads and writes at the race's places, each with
the location (owner and key), and decides who waits.  Whoever waits is let go as soon as another thread has done what
was waited for, so a confirmation costs little; a wait that nobody ends costs a pause.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident

from gilscope.toolkit.race.confirm.plan import CHANGED, FIRST, LOST, MET, READS, SECOND, WRITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Location = tuple[Any, Any]      # the owner itself, so that its id stays its own, and the key; ANY for all keys

PAUSES = (0.005, 0.02, 0.05, 0.01, 0.035)   # seconds, by try: which one fits depends on the program
MOST_PAUSES = 40        # of one race in one run: a place in a loop must not make it endless
ENOUGH_PAUSES = 5       # once the race is confirmed
MOST_LINES = 4          # that a span waits at


class AnyKey:
    """The type of ANY."""


ANY = AnyKey()      # stands for every key of its owner
WRITE, SPAN = "a write", "a span's beginning"    # what a thread may wait for, beside the race's other place


class Wait:
    """A thread that waits: for a WRITE or a SPAN of the location, or for whoever comes to one of the places."""

    def __init__(self, location: Location, until: str | int) -> None:
        self.thread = get_ident()
        self.location = location
        self.until = until
        self.over = allocate_lock()
        self.over.acquire()


class Span:
    """What a thread has read and means to write, or is iterating over."""

    def __init__(self, location: Location, seen: int) -> None:
        self.location = location
        self.seen = seen    # updates that the value read holds
        self.overtaken = 0
        self.lines = 0      # waits before one of them


class Watcher:
    """One race of the first run.

    Args:
        question: What would confirm it, see `confirm.plan`.
        key: How the key of the raced item is written, "" to look at all of them.
        pause: How long a thread waits, in seconds.
        tell: Called with the number of confirmations, or of lost updates, whenever it changes.
    """

    def __init__(self, question: str, key: str, pause: float, tell: Callable[[int], None]) -> None:
        self.question = question
        self._key = key
        self._pause = pause
        self._tell = tell
        self._times = 0
        self._updates: dict[tuple[int, str], tuple[int, int]] = {}   # of a location: made, and held by its value
        self._left = MOST_PAUSES
        self._mutex = allocate_lock()
        self._waits: list[Wait] = []
        self._spans: dict[int, Span] = {}

    def arrive(self, location: Location, roles: int) -> None:
        """Be about to access the location; wait there for the race's other place when the question is MET."""
        if self.question != MET or not roles & (FIRST | SECOND) or not self._is_meant(location):
            return
        other = (SECOND if roles & FIRST else 0) | (FIRST if roles & SECOND else 0)
        with self._mutex:
            met = [wait for wait in self._others(location) if isinstance(wait.until, int) and wait.until & roles]
            if met:
                self._end(met[:1])
                self._confirm(self._times + 1)
                return
        self._wait(location, other)

    def read(self, location: Location, roles: int) -> None:
        """Have read what a later write of this thread depends on; wait for another thread's write."""
        if self.question not in {MET, CHANGED} and roles & READS and self._is_meant(location):
            self.begin(location)
            self._wait_for_a_write()

    def linger(self) -> None:
        """Be somewhere between a read and the write that depends on it; wait likewise."""
        span = self._spans.get(get_ident())
        if span is not None and span.lines < MOST_LINES:   # its write may never come
            span.lines += 1
            self._wait_for_a_write()

    def begin(self, location: Location) -> None:
        """Depend on the location, or iterate over it, from here on."""
        self._spans[get_ident()] = Span(location, self._updates.get(_name(location), (0, 0))[1])
        with self._mutex:
            self._end([wait for wait in self._others(location) if wait.until is SPAN])

    def end(self) -> None:
        """Iterate no more."""
        self._spans.pop(get_ident(), None)

    def iterating(self) -> None:
        """Be between two items."""
        self._wait_for_a_write()

    def before_write(self, location: Location, roles: int) -> None:
        """Be about to write: in a span wait for another thread's write, else for another thread's span."""
        if self.question == MET or not roles & WRITES or not self._is_meant(location):
            return
        own = self._spans.get(get_ident())
        if own is not None and same(own.location, location):
            self._wait_for_a_write()
        elif not self._spans_of_others(location):
            self._wait(location, SPAN)

    def wrote(self, location: Location, roles: int) -> None:
        """Have written, or failed to: other threads' spans over the location have missed it."""
        if self.question == MET or not roles & WRITES:
            return
        me = get_ident()
        with self._mutex:
            for span in self._spans_of_others(location):
                span.overtaken += 1
                if self.question == CHANGED:
                    self._confirm(self._times + 1)
            own = self._spans.get(me)
            if self.question != CHANGED:
                if own is not None and same(own.location, location):
                    del self._spans[me]
                    self._close(own)
                else:   # a store that depends on nothing: nothing is lost that was not meant to be
                    made, _ = self._updates.get(_name(location), (0, 0))
                    self._updates[_name(location)] = made + 1, made + 1
            self._end([wait for wait in self._others(location) if wait.until is WRITE])

    def _close(self, span: Span) -> None:
        """Count a write at its span's end."""
        made, held = self._updates.get(_name(span.location), (0, 0))
        self._updates[_name(span.location)] = made + 1, span.seen + 1
        if self.question == LOST:
            self._confirm(self._times - (made - held) + (made - span.seen))
        elif span.overtaken:
            self._confirm(self._times + 1)

    def _is_meant(self, location: Location) -> bool:
        owner, key = location
        return not self._key or key is ANY or hasattr(owner, "shape") or f"[{key!r}]" == self._key

    def _spans_of_others(self, location: Location) -> list[Span]:
        return [span for thread, span in list(self._spans.items())
                if thread != get_ident() and same(span.location, location)]

    def _others(self, location: Location) -> list[Wait]:
        return [wait for wait in self._waits if wait.thread != get_ident() and same(wait.location, location)]

    def _wait_for_a_write(self) -> None:
        span = self._spans.get(get_ident())
        if span is None or span.overtaken:
            return
        with self._mutex:
            # Whoever comes second goes on: of two that wait for each other none would write.
            if any(wait.until is WRITE for wait in self._others(span.location)):
                return
        self._wait(span.location, WRITE)

    def _wait(self, location: Location, until: str | int) -> None:
        with self._mutex:
            if self._left <= 0:
                return
            self._left -= 1
            wait = Wait(location, until)
            self._waits.append(wait)
        if not wait.over.acquire(timeout=self._pause):
            with self._mutex:
                self._end([wait] if wait in self._waits else [])

    def _end(self, waits: list[Wait]) -> None:
        for wait in waits:
            self._waits.remove(wait)
            wait.over.release()

    def _confirm(self, times: int) -> None:
        if times != self._times:
            self._times = times
            self._left = min(self._left, ENOUGH_PAUSES)
            self._tell(times)


def _name(location: Location) -> tuple[int, str]:
    """Return what stands for a location whose key need not be hashable."""
    return id(location[0]), "" if location[1] is ANY else repr(location[1])


def same(one: Location, other: Location) -> bool:
    """Return whether two locations may be one."""
    if one[0] is not other[0]:
        return False
    if one[1] is ANY or other[1] is ANY:
        return True
    shape = getattr(one[0], "shape", None)
    return _equal(one[1], other[1]) if shape is None else _overlap(_box(one[1], shape), _box(other[1], shape))


def _box(key: Any, shape: tuple[int, ...]) -> list[range]:
    """Return what an array's key selects of each axis; all of it where the key is no integer and no slice."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(not isinstance(each, int | slice) for each in keys):
        keys = ()
    selected = [each if isinstance(each, slice) else slice(each, each + 1 or None) for each in keys]
    return [range(*(selected[axis] if axis < len(selected) else slice(None)).indices(length))
            for axis, length in enumerate(shape)]


def _overlap(one: list[range], other: list[range]) -> bool:
    return all(set(each) & set(its) for each, its in zip(one, other, strict=True))


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001  the program's keys; whatever they do, the run goes on
        return False
