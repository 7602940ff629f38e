"""Run threads' calls at the same time, so that they begin within less than a microsecond, or one after the other.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import os
import random
import time
from _thread import allocate_lock, start_new_thread
from contextlib import contextmanager
from functools import partial

from gilscope.toolkit.hammer.stalls import Staller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from gilscope.toolkit.hammer.stalls import StallPipe
    from gilscope.toolkit.processes.forks import WriteRecord

    type Turns = Literal["one", "turns", "whole", "mixed"]

SPINS = 300              # before a waiting thread offers its core to another
LIFE_SECONDS = 1.0       # between two signs of life of threads that make calls
MEETING_SECONDS = 0.06   # of rounds in which the threads meet; a busy machine gets through few of them
TURNS = 2                # of each thread, where one makes calls after the other; each turn wakes a thread


class Meeting:
    """Has threads begin a round within less than a microsecond, where each has a core.

    Plain loads and stores of list items: a barrier would order the threads' earlier accesses as well, and wake them one
    after the other.
    """

    def __init__(self, threads: int, staller: Staller | None) -> None:
        """Have so many threads meet, and be stopped at times by `staller`, if there is one."""
        self.staller = staller
        self.rounds = 2**62     # that are made; thread 0 sets it before it arrives, when the time is up
        self.passes = [0] * threads   # that each thread has made of its calls, if it repeats them
        self._arrived = [0] * threads
        self._until = time.perf_counter() + MEETING_SECONDS

    def wait(self, thread: int, number: int, delay: int = 0) -> bool:
        """Return when all threads have arrived at a round, `delay` empty iterations later; False: the time is up."""
        arrived, mark = self._arrived, number + 1
        if thread == 0 and number and time.perf_counter() > self._until:
            self.rounds = number
        arrived[thread] = mark
        spins = 0
        for other in range(len(arrived)):
            while arrived[other] < mark:
                spins += 1
                if spins > SPINS:
                    os.sched_yield()
                    spins = 0
        while delay:
            delay -= 1
        return number < self.rounds

    @contextmanager
    def stopped_at_times(self, *, once: bool = False) -> Iterator[int]:
        """Have this thread be stopped at arbitrary instructions, if there is a staller.

        Yields after how many calls it is to let other threads go on; 0: never.
        """
        staller = self.staller
        if staller is None:
            yield 0
            return
        staller.enter()
        if once:
            staller.once()
        else:
            staller.begin()
        try:
            yield staller.calls()
        finally:
            staller.leave()


class SignsOfLife:
    """Writes a record without content each second in which a call has returned."""

    def __init__(self, write: WriteRecord, calls: Callable[[Meeting], int]) -> None:
        """Look at `calls`, which returns how many have returned so far, or another number that grows with it."""
        self._write = write
        self._calls = calls
        self._known = 0

    def look(self, meeting: Meeting) -> None:
        """Write a record if calls have returned since the last time."""
        if (calls := self._calls(meeting)) > self._known:
            self._known = calls
            self._write()


def run_together(work: Sequence[Callable[[Meeting, int], None]], pipe: StallPipe, life: SignsOfLife, *, stalls: bool,
                 seed: int) -> int:
    """Run each thread's work at the same time, with its number; return how many rounds of a meeting there was time for.

    Args:
        work: What each thread does.
        pipe: Where threads are stopped.
        life: Looks for calls that have returned, in this thread.
        stalls: Stop them at arbitrary instructions.
        seed: Of what is drawn.
    """
    staller = Staller(pipe, random.Random(seed)) if stalls else None
    meeting = Meeting(len(work), staller)

    def run(thread: int) -> None:
        work[thread](meeting, thread)

    _run_threads(run, len(work), partial(life.look, meeting))
    if staller:
        staller.close()
    return meeting.rounds


def _run_threads(run: Callable[[int], None], count: int, each_second: Callable[[], None] | None = None) -> None:
    """Run a function in so many threads and wait for them.

    Not `threading.Thread`, which waits until each has begun: on a busy machine that takes longer than all calls.
    """
    ended = [allocate_lock() for _ in range(count)]
    for each in ended:
        each.acquire()

    def to_its_end(thread: int) -> None:
        try:
            run(thread)
        finally:
            ended[thread].release()

    for thread in range(count):
        start_new_thread(to_its_end, (thread,))
    for each in ended:
        if each_second is None:
            each.acquire()
            continue
        while not each.acquire(timeout=LIFE_SECONDS):
            each_second()


def run_in_turn(calls: Sequence[Sequence[Callable[[], None]]], order: Turns) -> None:
    """Make `calls[thread][round]` one after the other.

    Args:
        calls: The same number of rounds for each thread.
        order: one: by rounds, in this thread. turns: by rounds, each part of them in another thread. whole: all of a
            thread's before those of another. mixed: each thread keeps the order of its rounds.
    """
    if order == "one":
        for _, number, thread in _by_round(calls):
            calls[thread][number]()
        return
    turns = [*_turns(calls, order)]
    doors = [allocate_lock() for _ in turns]   # each turn opens the next one's
    for each in doors[1:]:
        each.acquire()

    def work(thread: int) -> None:
        for number, (whose, mine) in enumerate(turns):
            if whose == thread:
                doors[number].acquire()
                for row, round_ in mine:
                    calls[row][round_]()
                if number + 1 < len(doors):
                    doors[number + 1].release()

    _run_threads(work, len(calls))


def _by_round(calls: Sequence[Sequence[object]]) -> Iterator[tuple[int, int, int]]:
    """Yield (position, round, thread) in the order of rounds."""
    threads = len(calls)
    return ((number * threads + thread, number, thread) for number in range(len(calls[0])) for thread in range(threads))


def _turns(calls: Sequence[Sequence[object]], order: Turns) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield (thread, the calls that it makes, as (row, round)) of each turn."""
    threads, rounds = len(calls), len(calls[0])
    if order == "turns":
        pairs = [(thread, number) for _, number, thread in _by_round(calls)]
        size = -(-len(pairs) // (TURNS * threads))
        yield from ((part % threads, pairs[part * size:(part + 1) * size]) for part in range(TURNS * threads))
    elif order == "whole":
        yield from ((thread, [(thread, number) for number in range(rounds)]) for thread in reversed(range(threads)))
    else:
        draw, done = random.Random(rounds), [0] * threads
        while left := [each for each in range(threads) if done[each] < rounds]:
            thread = draw.choice(left)
            until = min(rounds, done[thread] + draw.randint(1, 2 * rounds // TURNS + 1))
            yield thread, [(thread, number) for number in range(done[thread], until)]
            done[thread] = until
