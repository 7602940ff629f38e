"""Hold a thread at one place of a race until another thread comes by, and observe the outcome.

A `RaceWatcher` is one race in a confirming run.  It receives arrivals, reads and writes at the race's places, each with
its location (owner and key), and decides which thread pauses.  A pause ends as soon as another thread has done what it
waits for, so a confirmation costs little; only a pause that nobody ends lasts its full time.

All of this runs in the checked process.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, get_ident
from collections import deque
from types import GetSetDescriptorType

from gilscope.toolkit.race import safe_inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType
    from typing import Any

    Location = tuple[Any, Any]      # the owner itself, so that its id stays its own, and the key; ANY for all keys
    Place = tuple[str, int, int, str]                 # path, line, column, op
    # Race.ident, one of the questions, the raced item's key as it is written, places with their roles
    Plan = tuple[str, str, str, list[tuple[Place, int]]]

READS, WRITES = 1, 2          # begins a span; ends one, or falls into another thread's
FIRST, SECOND = 4, 8          # the race's two places
ITERATES = 16                 # the structure must not change from here to the iteration's end

# The questions of a plan.
LOST = "lost"         # Was a write overwritten unread?
PASSED = "passed"     # Did another thread act between the check and the act?
MET = "met"           # Were both threads at their places at once?
CHANGED = "changed"   # Did the structure change during the iteration?

ANSWERS = "answers"   # file in the spool of the run; each line has a race's ident and how often it is confirmed so far

PAUSES = (0.005, 0.02, 0.05, 0.01, 0.035)   # seconds, by try: which one fits depends on the program
MOST_PAUSES = 40        # of one race in one run: a place in a loop must not make the run endless
ENOUGH_PAUSES = 5       # left once the race is confirmed
MOST_LINES = 4          # pauses before a line, within one span
TOOLS = (4, 3, 5)       # ids of sys.monitoring: those that nobody claims by convention, then the optimizer's
REMEMBERED = 16         # accesses per thread that the caller of a getter or setter can look back on
OURS = __file__.rpartition("confirm")[0]     # the folder of the race checker


class AnyKey:
    """The type of ANY."""


ANY = AnyKey()      # stands for every key of its owner
WRITE, SPAN = "a write", "a span's beginning"    # what a thread may wait for, beside the race's other place


class PausedThread:
    """A thread that waits for a WRITE or a SPAN of the location, or for a thread at one of the places in `until`."""

    def __init__(self, location: Location, until: str | int) -> None:
        self.thread = get_ident()
        self.location = location
        self.until = until
        self.over = allocate_lock()
        self.over.acquire()


class ReadWriteSpan:
    """The time from a thread's read to the write that depends on it, or of an iteration."""

    def __init__(self, location: Location, seen: int) -> None:
        self.location = location
        self.seen = seen    # updates that are part of the value read
        self.overtaken = 0  # writes of other threads since then
        self.lines = 0      # pauses before a line since then


class RaceWatcher:
    """Confirms one race of the first run.

    Args:
        question: What would confirm it: LOST, PASSED, MET or CHANGED.
        key: The key of the raced item as it is written, "" to watch all items.
        pause: Seconds that a thread waits.
        report: Called with the number of confirmations, or of lost updates, whenever it changes.
    """

    def __init__(self, question: str, key: str, pause: float, report: Callable[[int], None]) -> None:
        self.question = question
        self._key = key
        self._pause_seconds = pause
        self._report = report
        self._times = 0
        # By location: the updates that were made, and those that its value contains.
        self._updates: dict[tuple[int, str], tuple[int, int]] = {}
        self._left = MOST_PAUSES
        self._mutex = allocate_lock()
        self._paused: list[PausedThread] = []
        self._spans: dict[int, ReadWriteSpan] = {}

    def arrive(self, location: Location, roles: int) -> None:
        """Handle an access that is about to be made: if the question is MET, pause for the race's other place."""
        if self.question != MET or not roles & (FIRST | SECOND) or not self._is_watched(location):
            return
        other = (SECOND if roles & FIRST else 0) | (FIRST if roles & SECOND else 0)
        with self._mutex:
            met = [each for each in self._others(location) if isinstance(each.until, int) and each.until & roles]
            if met:
                self._resume(met[:1])
                self._confirm(self._times + 1)
                return
        self._pause_until(location, other)

    def after_read(self, location: Location, roles: int) -> None:
        """Handle a read that a later write of this thread depends on: pause for another thread's write."""
        if self.question not in {MET, CHANGED} and roles & READS and self._is_watched(location):
            self.begin_span(location)
            self._pause_for_write()

    def at_line(self) -> None:
        """Pause between a read and the write that depends on it, for another thread's write."""
        span = self._spans.get(get_ident())
        if span is not None and span.lines < MOST_LINES:   # the span's write may never come
            span.lines += 1
            self._pause_for_write()

    def begin_span(self, location: Location) -> None:
        """Begin a span of this thread over the location."""
        self._spans[get_ident()] = ReadWriteSpan(location, self._updates.get(_name(location), (0, 0))[1])
        with self._mutex:
            self._resume([each for each in self._others(location) if each.until is SPAN])

    def end_span(self) -> None:
        """End the span of an iteration."""
        self._spans.pop(get_ident(), None)

    def between_items(self) -> None:
        """Pause between two items of an iteration, for another thread's write."""
        self._pause_for_write()

    def before_write(self, location: Location, roles: int) -> None:
        """Pause before a write: within a span for another thread's write, otherwise for another thread's span."""
        if self.question == MET or not roles & WRITES or not self._is_watched(location):
            return
        own = self._spans.get(get_ident())
        if own is not None and may_be_same(own.location, location):
            self._pause_for_write()
        elif not self._spans_of_others(location):
            self._pause_until(location, SPAN)

    def after_write(self, location: Location, roles: int) -> None:
        """Handle a write that was done or has failed; spans of other threads over the location missed it."""
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
                if own is not None and may_be_same(own.location, location):
                    del self._spans[me]
                    self._end_with_write(own)
                else:   # a store that depends on no read overwrites on purpose
                    made, _ = self._updates.get(_name(location), (0, 0))
                    self._updates[_name(location)] = made + 1, made + 1
            self._resume([each for each in self._others(location) if each.until is WRITE])

    def _end_with_write(self, span: ReadWriteSpan) -> None:
        """Count the write that ends a span."""
        made, held = self._updates.get(_name(span.location), (0, 0))
        self._updates[_name(span.location)] = made + 1, span.seen + 1
        if self.question == LOST:
            self._confirm(self._times - (made - held) + (made - span.seen))
        elif span.overtaken:
            self._confirm(self._times + 1)

    def _is_watched(self, location: Location) -> bool:
        owner, key = location
        return (not self._key or key is ANY or _shape(owner) is not None
                or f"[{safe_inspection.item_key(key)}]" == self._key)

    def _spans_of_others(self, location: Location) -> list[ReadWriteSpan]:
        return [span for thread, span in list(self._spans.items())
                if thread != get_ident() and may_be_same(span.location, location)]

    def _others(self, location: Location) -> list[PausedThread]:
        return [each for each in self._paused if each.thread != get_ident() and may_be_same(each.location, location)]

    def _pause_for_write(self) -> None:
        span = self._spans.get(get_ident())
        if span is None or span.overtaken:
            return
        with self._mutex:
            # Two threads that waited for each other would both never write, so the second goes on.
            if any(each.until is WRITE for each in self._others(span.location)):
                return
        self._pause_until(span.location, WRITE)

    def _pause_until(self, location: Location, until: str | int) -> None:
        with self._mutex:
            if self._left <= 0:
                return
            self._left -= 1
            own = PausedThread(location, until)
            self._paused.append(own)
        if not own.over.acquire(timeout=self._pause_seconds):
            with self._mutex:
                self._resume([own] if own in self._paused else [])

    def _resume(self, paused: list[PausedThread]) -> None:
        for each in paused:
            self._paused.remove(each)
            each.over.release()

    def _confirm(self, times: int) -> None:
        if times != self._times:
            self._times = times
            self._left = min(self._left, ENOUGH_PAUSES)
            self._report(times)


# A watcher compares and names keys while it holds its lock, so without any code of the program: that may wait for a
# lock that another thread holds on its way to the watcher, or come to a watched place itself.


def _name(location: Location) -> tuple[int, str]:
    """Return a hashable name of a location, whose key may be unhashable."""
    owner, key = location
    if key is ANY:
        return id(owner), ""
    return id(owner), repr(key) if safe_inspection.is_plain(key) else f"{safe_inspection.show(key)} at {id(key)}"


def may_be_same(one: Location, other: Location) -> bool:
    """Return True if two locations may be the same."""
    if one[0] is not other[0]:
        return False
    if one[1] is ANY or other[1] is ANY:
        return True
    shape = _shape(one[0])
    if shape is not None:
        return _overlap(_selected(one[1], shape), _selected(other[1], shape))
    return slice in {type(one[1]), type(other[1])} or safe_inspection.same(one[1], other[1])


def _shape(owner: Any) -> tuple[int, ...] | None:
    """Return the lengths of an array's axes, None for other objects."""
    for cls in safe_inspection.mro(type(owner)):
        found = safe_inspection.class_members(cls).get("shape")
        if found is not None:
            shape = found.__get__(owner) if type(found) is GetSetDescriptorType else found
            return shape if type(shape) is tuple else None
    return None


def _selected(key: Any, shape: tuple[int, ...]) -> list[range]:
    """Return the indices that an array's key selects on each axis; all if the key is neither integer nor slice."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(not isinstance(each, int | slice) for each in keys):
        keys = ()
    selected = [each if isinstance(each, slice) else slice(each, each + 1 or None) for each in keys]
    return [range(*(selected[axis] if axis < len(selected) else slice(None)).indices(length))
            for axis, length in enumerate(shape)]


def _overlap(one: list[range], other: list[range]) -> bool:
    return all(map(_meet, one, other))


def _meet(one: range, other: range) -> bool:
    """Return True if two ranges have a number in common."""
    few, many = sorted((each[::-1] if each.step < 0 else each for each in (one, other)), key=len)
    if not few:
        return False
    before = max(0, -(-(many[0] - few[0]) // few.step))
    return any(number in many for number in few[before:before + many.step])     # what follows repeats itself


class LineEvents:
    """Lets watchers pause before each line of a function that contains a span's read.

    If each of the two accesses holds a lock and the whole does not, a pause at either access would keep the other
    threads out.  The lines between them are outside of the locks.
    """

    def __init__(self) -> None:
        self._watchers: dict[CodeType, set[RaceWatcher]] = {}
        self._tool = -1

    def follow(self, code: CodeType, watcher: RaceWatcher) -> None:
        """Call `watcher.at_line` before each line of `code` from now on."""
        known = self._watchers.setdefault(code, set())
        if watcher in known:
            return
        known.add(watcher)
        if self._tool < 0:
            self._begin()
        if self._tool >= 0:
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)

    def _begin(self) -> None:
        monitoring = sys.monitoring
        self._tool = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), -1)
        if self._tool >= 0:
            monitoring.use_tool_id(self._tool, "gilscope")
            monitoring.register_callback(self._tool, monitoring.events.LINE, self._at_line)

    def _at_line(self, code: CodeType, _line: int) -> None:
        for watcher in tuple(self._watchers.get(code, ())):
            watcher.at_line()


class PausingSite:
    """A site of the rewritten program, with the watchers and roles of the races that have a place there."""

    __slots__ = ("_lines", "key", "watchers")

    def __init__(self, key: str, watchers: Sequence[tuple[RaceWatcher, int]], lines: LineEvents) -> None:
        self.key = key
        self.watchers = watchers
        self._lines = lines

    def arrive(self, owner: Any, key: Any) -> None:
        """Handle an access that is about to be made."""
        for watcher, roles in self.watchers:
            watcher.arrive((owner, key), roles)

    def after_read(self, owner: Any, key: Any) -> None:
        """Handle a read that was made."""
        for watcher, roles in self.watchers:
            if roles & READS and not roles & WRITES:
                self._lines.follow(_program_code(), watcher)
            watcher.after_read((owner, key), roles)

    def before_write(self, owner: Any, key: Any) -> None:
        """Handle a write that is about to be made."""
        for watcher, roles in self.watchers:
            watcher.arrive((owner, key), roles & ~READS)
            watcher.before_write((owner, key), roles)

    def after_write(self, owner: Any, key: Any) -> None:
        """Handle a write that was made."""
        for watcher, roles in self.watchers:
            watcher.after_write((owner, key), roles)


class RecentAccesses:
    """The last accesses of each thread, so that the caller of a getter or setter sees what it touched."""

    def __init__(self) -> None:
        self.enabled = False
        self._counts: dict[int, int] = {}
        self._last: dict[int, deque[tuple[int, bool, Any, Any]]] = {}

    def add_read(self, owner: Any, key: Any) -> None:
        """Remember a read of this thread."""
        self._add(owner, key, wrote=False)

    def add_write(self, owner: Any, key: Any) -> None:
        """Remember a write of this thread."""
        self._add(owner, key, wrote=True)

    def _add(self, owner: Any, key: Any, *, wrote: bool) -> None:
        if self.enabled:
            me = get_ident()
            count = self._counts[me] = self._counts.get(me, 0) + 1
            self._last.setdefault(me, deque(maxlen=REMEMBERED)).append((count, wrote, owner, key))

    def position(self) -> int:
        """Return the number of accesses that this thread has made."""
        return self._counts.get(get_ident(), 0)

    def since(self, position: int, *, wrote: bool) -> list[tuple[Any, Any]]:
        """Return the locations that this thread has read, or written with `wrote`, after `position`."""
        found = self._last.get(get_ident(), ())
        return [(owner, key) for count, write, owner, key in found if count > position and write == wrote]


def _program_code() -> CodeType:
    """Return the code of the program's function that called an op."""
    frame = sys._getframe(1)  # noqa: SLF001  the only way to the caller
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame.f_code
