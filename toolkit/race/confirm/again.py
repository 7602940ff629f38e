"""Run the program again, pausing at the two places of each race, and say what came of it.

No invariant is asked from the user: a lost update is seen as a write of another thread that fell between a read and
the write that depends on it, see `pausing.watch`.  The runs' output is thrown away; they read nothing.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gilscope.toolkit.race.confirm.plan import ANSWERS, in_words, plan
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.spool import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.race.confirm.plan import Plan
    from gilscope.toolkit.race.program.spec import Spec
    from gilscope.toolkit.race.report.model import Race

LONGER = 10           # times the first run may a try last,
SHORTEST_LIMIT = 10   # or that many seconds where this is longer
POLL_SECONDS = 0.01
MOST_ANSWERS = 2**24   # bytes; ours have some twenty for each
LONGEST_COUNT = 10     # digits


def confirm(races: Sequence[Race], spec: Spec, entry: str, *, tries: int, limit: float,
            progress: Callable[[int, int], None] = lambda *_: None) -> dict[str, str]:
    """Return {Race.ident: "confirmed: ..." or "not reproduced in N tries"}.

    Args:
        races: Of the first run.
        spec: Of the first run.
        entry: What `sys.path` begins with.
        tries: How often the program is run again at most.
        limit: Seconds after which a try is ended.
        progress: Called before each try with its number, from 1, and how many races are open.
    """
    plans = {race.ident: plan(race) for race in races}
    found: dict[str, str] = {}
    for attempt in range(tries):
        open_ = [each for ident, each in plans.items() if ident not in found]
        if not open_:
            break
        progress(attempt + 1, len(open_))
        for ident, times in _try(open_, attempt, spec, entry, limit).items():
            found[ident] = in_words(plans[ident][1], times)
    missed = f"not reproduced in {tries} {'tries' if tries != 1 else 'try'}"
    return {ident: found.get(ident, missed) for ident in plans}


def limit_after(seconds: float) -> float:
    """Return how long a try may last when the first run lasted `seconds`."""
    return max(LONGER * seconds, SHORTEST_LIMIT)


def _try(plans: Sequence[Plan], attempt: int, spec: Spec, entry: str, limit: float) -> dict[str, int]:
    """Run the program once; return how often each race was confirmed."""
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
    """Return how often each race was confirmed, by the run's last word; the program may have put anything there."""
    if (file := opened(path)) is None:
        return {}
    with file:
        lines = [line.split() for line in file.read(MOST_ANSWERS).decode("ascii", "replace").split("\n")[:-1]]
    last = {words[0]: words[1] for words in lines if len(words) == 2}  # noqa: PLR2004  a race, and a number
    return {ident: int(times) for ident, times in last.items()
            if times.isdecimal() and len(times) < LONGEST_COUNT and int(times) > 0}


def _run_silently(spec: Spec, spool: str, entry: str, limit: float) -> None:
    """Run the program with nothing to read and nobody to listen; end it and what it started after `limit` seconds."""
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
        # Also what the program left running: with Ctrl-C as much as after the limit.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
