"""Sessions in the report of a run: the words of its scope, and its list of sessions."""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING

from gilscope.toolkit.report.wording import or_text
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gilscope.toolkit.model import Run

MERGED = "hosts_of_one_machine"   # option of a run that was merged from those of so many hosts: not stored
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))   # seconds


def session_rounds(run: Run) -> list[int]:
    """Return the number of complete rounds of each session that has one."""
    ends = [*(session.first_round for session in run.later_sessions), run.rounds_done]
    counts = [end - session.first_round for session, end in zip(run.sessions, ends, strict=True)]
    return [count for count in counts if count > 0]


def scope_text(run: Run) -> str:
    """Return the scope of a run's numbers: "in this session", "over 3 sessions begun within 4 hours"."""
    sessions = len(session_rounds(run))
    if sessions >= FEWEST:
        return f"over {sessions} sessions begun within {_span_text(session_span(run))}"
    return f"in these {sessions} sessions" if sessions > 1 else "in this session"


def scope_of_hosts(runs: Collection[Run]) -> str:
    """Return the scope of the runs of hosts: "each host in this session or over 3 sessions begun within 4 hours"."""
    return ("each host " if len(runs) > 1 else "") + or_text(dict.fromkeys(map(scope_text, runs)))


def session_span(run: Run) -> float:
    """Return the seconds from the start of the first session to that of the last.

    How close together the sessions are decides what they show: three within minutes say little about another day.
    """
    starts = [datetime.fromisoformat(session.started).timestamp()
              for session, _ in zip(run.sessions, session_rounds(run), strict=False)]
    return starts[-1] - starts[0] if starts else 0.0


def _span_text(seconds: float) -> str:
    """Return a time in the largest unit of which there are two, rounded up: "5 hours"."""
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= 2 * unit), _UNITS[-1])
    return counted(max(ceil(seconds / unit), 1), name)


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
