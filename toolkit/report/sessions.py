"""Sessions in the report of a run: the words of its scope, its list of sessions, its warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Banner
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.unsteady import USUAL_SPREAD, unsteady_baselines
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.units import counted, format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.model import Run

MERGED = "hosts_of_one_machine"   # option of a run that was merged from those of so many hosts: not stored
SEEDS = "seeds_of_hosts"          # its option with the seed of each of these hosts, by name: not stored either


def session_rounds(run: Run) -> list[int]:
    """Return the number of complete rounds of each session that has one."""
    ends = [*(session.first_round for session in run.later_sessions), run.rounds_done]
    counts = [end - session.first_round for session, end in zip(run.sessions, ends, strict=True)]
    return [count for count in counts if count > 0]


def scope_text(run: Run) -> str:
    """Return the scope of a run's numbers: "in this session"; "" if intervals cover other sessions, too."""
    sessions = len(session_rounds(run))
    if sessions >= FEWEST:
        return ""
    return f"in these {sessions} sessions" if sessions > 1 else "in this session"


def where_text(run: Run) -> str:
    """Return where a run can be continued if not here: a published copy, which has no host name, cannot."""
    return "" if run.machine.hostname else " where it was measured"


def session_lines(run: Run) -> Iterator[str]:
    """Yield a line on the sessions of a run, if it has or is to have several."""
    planned = run.options.get("sessions", 1)
    counts = session_rounds(run)
    if len(counts) > 1 or planned > 1:
        starts = list_text(f"{session.started[:16].replace('T', ' ')} ({counted(count, 'round')})"
                           for session, count in zip(run.sessions, counts, strict=False))
        of = f" of {planned}" if planned > len(counts) else ""
        yield f"{len(counts)}{of} sessions: {starts}"


def unsteady_banners(run: Run) -> Iterator[Banner]:
    """Yield a warning if the CPU time of a serial cell spreads by more than usual."""
    if found := unsteady_baselines(Index(run)):
        several = list_text(
            f"{each.cell.workload} on {each.cell.build} {each.spread * 100:.0f} % ({format_seconds(each.low)} to "
            f"{format_seconds(each.high)})" for each in found)
        yield Banner(f"the CPU time of {run.baseline} spread within a session, from a tenth to nine tenths of its "
                     f"values: {several}; usual is up to {USUAL_SPREAD * 100:.0f} %. Something changed the speed of "
                     f"this work during the run: before you rely on a ratio, {_at_another_time(run)}")


def _at_another_time(run: Run) -> str:
    """Return how to measure the same cells at another time; the run of a fleet has one session."""
    if MERGED in run.options:
        return "measure at another time, too, under another label"
    return f"measure a further session: gilscope run --add-session {run.label}{where_text(run)}"
