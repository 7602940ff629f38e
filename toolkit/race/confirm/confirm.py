"""Run the program again with pauses at the two places of each race, and report the outcome.

The user states no invariant: a lost update shows as a write of another thread between a read and the write that
depends on it, see `watch`.  The runs' output is discarded; their standard input is empty.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gilscope.toolkit.race.confirm.watch import (
    ANSWERS,
    CHANGED,
    FIRST,
    ITERATES,
    LOST,
    MET,
    PASSED,
    READS,
    SECOND,
    WRITES,
)
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.report.model import ConfirmationOutcome
from gilscope.toolkit.race.spool import opened
from gilscope.toolkit.race.terms import RaceKind
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.race.confirm.watch import Place, Plan
    from gilscope.toolkit.race.program.spec import CheckedRunSpec
    from gilscope.toolkit.race.report.model import Access, Race, Spot

LONGER = 10           # a try may last this many times as long as the first run,
SHORTEST_LIMIT = 10   # but at least this many seconds
POLL_SECONDS = 0.01
MOST_ANSWERS = 2**24   # bytes; a line has about twenty
LONGEST_COUNT = 10     # digits
HARM = {LOST, CHANGED}  # two threads at their places do no harm by that: both may have stored the same value
SPANS = {RaceKind.LOST_UPDATE: LOST, RaceKind.CHECK_THEN_ACT: PASSED}


def confirm(races: Sequence[Race], spec: CheckedRunSpec, entry: str, *, tries: int, limit: float,
            progress: Callable[[int, int], None] = lambda *_: None) -> dict[str, ConfirmationOutcome]:
    """Return the outcome for each `Race.ident`.

    Args:
        races: Found by the first run.
        spec: What the first run ran.
        entry: The first entry of `sys.path`.
        tries: The most often that the program is run again.
        limit: Seconds after which a try is ended.
        progress: Called before each try with its number, from 1, and the number of races that are not confirmed yet.
    """
    plans = {race.ident: make_plan(race) for race in races}
    found: dict[str, ConfirmationOutcome] = {}
    for attempt in range(tries):
        open_ = [each for ident, each in plans.items() if ident not in found]
        if not open_:
            break
        progress(attempt + 1, len(open_))
        for ident, times in _try(open_, attempt, spec, entry, limit).items():
            question = plans[ident][1]
            found[ident] = ConfirmationOutcome(
                confirmed=question in HARM, sentence=confirmation_text(question, times))
    missed = ConfirmationOutcome(
        confirmed=False, sentence=f"not reproduced in {counted(tries, 'try', 'tries')}")
    return {ident: found.get(ident, missed) for ident in plans}


def limit_after(seconds: float) -> float:
    """Return the seconds that a try may last if the first run lasted `seconds`."""
    return max(LONGER * seconds, SHORTEST_LIMIT)


def _try(plans: Sequence[Plan], attempt: int, spec: CheckedRunSpec, entry: str, limit: float) -> dict[str, int]:
    """Run the program once; return the number of confirmations by race."""
    spool = start.make_spool()
    spec.pauses = [attempt, list(plans)]
    try:
        with start.Lifeline() as spec.lifeline:
            spec.write(spool)
            _run_silently(spec, spool, entry, limit)
        return _answers(os.path.join(spool, ANSWERS))
    finally:
        start.remove_spool(spool)


def _answers(path: str) -> dict[str, int]:
    """Return the last count of confirmations by race; the program may have written anything to the file."""
    if (file := opened(path)) is None:
        return {}
    with file:
        lines = [line.split() for line in file.read(MOST_ANSWERS).decode("ascii", "replace").split("\n")[:-1]]
    last = {words[0]: words[1] for words in lines if len(words) == 2}  # a race and its count
    return {ident: int(times) for ident, times in last.items()
            if times.isdecimal() and len(times) < LONGEST_COUNT and int(times) > 0}


def _run_silently(spec: CheckedRunSpec, spool: str, entry: str, limit: float) -> None:
    """Run the program without input and output; after `limit` seconds, end it and every process that it started."""
    words = start.words(spec, spool, entry)
    pid = os.posix_spawn(
        words[0], words, os.environ, setsid=True,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                      (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                      (os.POSIX_SPAWN_DUP2, 1, 2)])
    deadline = time.monotonic() + limit
    try:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return
            time.sleep(POLL_SECONDS)
    finally:
        # Processes that the program left running end too, after Ctrl-C as after the limit.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def make_plan(race: Race) -> Plan:
    """Return the plan to confirm one race: plain lists, because it travels to the child in its spec."""
    iterates = [side for side in (race.first, race.second) if side.verb == "iterate"]
    places: dict[Place, int] = {}
    for role, side in ((FIRST, race.first), (SECOND, race.second)):
        _add(places, side.pause, role)
        if side in iterates:
            _add(places, side.pause, ITERATES)
        elif race.kind in SPANS or side.operator:
            _add_span(places, side, race.kind)
        elif side.verb != "read":
            _add(places, side.pause, WRITES)
    spans = any(roles & READS for roles in places.values())
    question = CHANGED if iterates else SPANS.get(race.kind, MET) if spans else MET
    return race.ident, question, race.item_key, list(places.items())


def _add_span(places: dict[Place, int], side: Access, kind: RaceKind) -> None:
    if side.operator and kind != RaceKind.CHECK_THEN_ACT:   # there the span begins at the check before it
        _add(places, side.pause, READS | WRITES)
    elif side.verb == "read":
        _add(places, side.pause, READS)
        if side.partner:
            _add(places, side.partner, WRITES)
    else:
        _add(places, side.pause, WRITES)
        if side.partner:
            _add(places, side.partner, READS)


def _add(places: dict[Place, int], spot: Spot, role: int) -> None:
    place = (spot.path, spot.line, spot.column, spot.op)
    places[place] = places.get(place, 0) | role


def confirmation_text(question: str, times: int) -> str:
    """Return the sentence on a race whose question was answered with yes `times` times."""
    if question == LOST:
        return f"confirmed: {counted(times, 'update')} lost"
    if question == CHANGED:
        return "confirmed: the structure changed during iteration"
    return "both threads were there at once"
