"""Further sessions of a run: when the next one is due, the wait for it, and whether the machine is as before."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.machine import now
from gilscope.toolkit.model import RunSession
from gilscope.toolkit.units import format_minutes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.measure.settings import RunRequest
    from gilscope.toolkit.model import Machine, Run

NAP_SECONDS = 60.0   # the longest sleep: the wait follows the clock, also after the machine was suspended
ALIKE = ("cpu_model", "cores", "system")   # of a machine, in all sessions; a reboot changes none of them


def lacks_sessions(run: Run, request: RunRequest) -> bool:
    """Return True if the run is to have more sessions than it has."""
    return len(run.sessions) < request.sessions


def begin_session(so_far: Run, request: RunRequest, machine: Machine) -> Run:
    """Return the run with a further session, which begins now and has no round yet.

    Raises:
        ToolkitError: The last session has no complete round, or the machine has changed.
    """
    first = so_far.rounds_done
    if first <= so_far.sessions[-1].first_round:
        raise ToolkitError(f"session {len(so_far.sessions)} of {so_far.label} has no complete round: continue it with "
                           f"gilscope run --resume {so_far.label}")
    for name in ALIKE:
        before, here = getattr(so_far.machine, name), getattr(machine, name)
        if before != here:
            raise ToolkitError(
                f"{name} was {before!r} when {so_far.label} began, and is {here!r} now, so a further session would "
                f"mix two machines: start a new run, and then: gilscope compare {so_far.label} NEW")
    return replace(
        so_far, later_sessions=(*so_far.later_sessions, RunSession(started=now(), first_round=first)),
        rounds_planned=first + request.settings.rounds, answered=(), stopped="running", options=request.to_options())


def seconds_until_next(run: Run, every: float, clock: Callable[[], float] = time.time) -> float:
    """Return the seconds until the next session is due, 0 if it is; `clock` returns seconds since the epoch."""
    return max(datetime.fromisoformat(run.sessions[-1].started).timestamp() + every - clock(), 0.0)


def wait_for_session(
    run: Run, request: RunRequest, *, clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the next session is due, and announce when that is; the run is neither open nor locked meanwhile.

    Raises:
        KeyboardInterrupt: After a message that says how to go on.
    """
    every = request.every or 0.0
    left = seconds_until_next(run, every, clock)
    if not left:
        return
    # In local time, as a watch shows it; the day only if it is another one.
    here, due = (datetime.fromtimestamp(each).astimezone() for each in (clock(), clock() + left))
    at = f"{due:%H:%M}" if here.date() == due.date() else f"{due:%Y-%m-%d %H:%M}"
    try:
        print_stderr(f"session {len(run.sessions) + 1} of {request.sessions} starts at {at}, in "
                     f"{format_minutes(left)}; Ctrl-C ends the wait and loses nothing")
        while left := seconds_until_next(run, every, clock):
            sleep(min(left, NAP_SECONDS))
    except KeyboardInterrupt:
        print_stderr(f"{run.label} has {len(run.sessions)} of {request.sessions} sessions; to go on: "
                     f"gilscope run --resume {run.label}")
        raise
