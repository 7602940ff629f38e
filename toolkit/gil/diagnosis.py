"""The findings of `gilscope gil` on a program: one value, from which text, JSON and page are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.gil.bottleneck import find_limit
from gilscope.toolkit.gil.holders import (
    find_convoys,
    find_holders,
    find_stoppers,
    longest_holds,
    stuck_seconds,
    worst_stall,
)
from gilscope.toolkit.gil.recorder import queued_share
from gilscope.toolkit.gil.summary import summarize
from gilscope.toolkit.gil.unfinished_waits import last_seen, with_unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.gil.bottleneck import Limit
    from gilscope.toolkit.gil.holders import Convoy, Hold, Holder, Stall, Stopper
    from gilscope.toolkit.gil.recorder import Recording
    from gilscope.toolkit.gil.rerun_without_gil import WithoutGil
    from gilscope.toolkit.gil.summary import RecordingSummary
    from gilscope.toolkit.gil.unfinished_waits import LastActivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One run of a program under the shim, with all derived values; times are seconds."""

    program: tuple[str, ...]           # the command line: a script or -m module, and its arguments
    version: str
    free_threaded: bool                # the build
    gil_used: bool
    exit: int                          # exit code, or minus the signal that ended it
    wall: float
    cpu: float
    summary: RecordingSummary
    limit: Limit
    holders: tuple[Holder, ...]        # of the GIL while others waited, the worst first
    longest_holds: tuple[Hold, ...]
    convoys: tuple[Convoy, ...]
    stall: Stall | None                # the worst: few hardly delay a program, but its answers
    stuck: float                       # the longest time in which all threads waited, two or more of them for locks
    stoppers: tuple[Stopper, ...]      # of all threads, without a GIL, the worst first
    switch_interval: float | None      # None if no thread waited for a GIL
    last_seen: tuple[LastActivity, ...]        # activity of threads of killed processes
    queued_share: float | None         # share of the time that threads needed a core in which they waited for one
    elsewhere: WithoutGil | None        # the run on the free-threaded build, if there was one


def diagnose(
    program: Sequence[str], recording: Recording, *, elsewhere: WithoutGil | None = None,
) -> Diagnosis:
    """Diagnose a recording of at least one process."""
    processes = [with_unfinished(process) for process in recording.processes]
    summary, holders, stoppers = summarize(processes), find_holders(processes), find_stoppers(processes)
    intervals = [process.switch_interval for process in processes if process.switch_interval is not None]
    first = processes[0]
    return Diagnosis(
        program=tuple(program), version=first.version, free_threaded=first.free_threaded,
        gil_used=recording.gil_used, exit=recording.ended, wall=recording.wall, cpu=recording.cpu, summary=summary,
        limit=find_limit(summary, holders, stoppers=stoppers), holders=holders,
        longest_holds=longest_holds(processes), convoys=find_convoys(processes, holders),
        stall=worst_stall(processes), stuck=stuck_seconds(processes), stoppers=stoppers,
        switch_interval=intervals[0] if intervals else None, last_seen=last_seen(processes),
        queued_share=queued_share(recording), elsewhere=elsewhere,
    )
