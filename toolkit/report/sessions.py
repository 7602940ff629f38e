"""Sessions in the report of a run: the words of its scope, and its list of sessions."""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING

from gilscope.toolkit.report.wording import range_text
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gilscope.toolkit.model import Run

MERGED = "hosts_of_one_machine"   # option of a run that was merged from those of so many hosts: not stored
SEEDS = "seeds_of_hosts"          # its option with the seed of each of these hosts, by name: not stored either
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
        return f"over {sessions} sessions begun within {spans_text([session_span(run)])}"
    return f"in these {sessions} sessions" if sessions > 1 else "in this session"


def scope_of_runs(runs: Collection[Run]) -> str:
    """Return the scope of several runs: "in 1 to 3 sessions each", "over 3 sessions each, begun within 2 days"."""
    counts = [max(len(session_rounds(run)), 1) for run in runs]
    each = " each" if len(counts) > 1 else ""
    if min(counts) >= FEWEST:
        spans = spans_text([session_span(run) for run in runs])
        return f"over {range_text(counts, str)} sessions{each}, begun within {spans}"
    if max(counts) == 1:
        return f"in one session{each}"
    return f"in {range_text(counts, str)} sessions{each}"


def session_span(run: Run) -> float:
    """Return the seconds from the start of the first session to that of the last.

    How close together the sessions are decides what they show: three within minutes say little about another day.
    """
    starts = [datetime.fromisoformat(session.started).timestamp()
              for session, _ in zip(run.sessions, session_rounds(run), strict=False)]
    return starts[-1] - starts[0] if starts else 0.0


def spans_text(spans: Collection[float]) -> str:
    """Return times in the largest unit of which there are two, rounded up: "5 hours", "3 minutes to 2 days"."""
    return range_text(spans, _span_text)


def _span_text(seconds: float) -> str:
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
