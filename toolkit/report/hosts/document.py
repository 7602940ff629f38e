"""The report of one request on several hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Document, Heading, Lines, Section, summary_lines
from gilscope.toolkit.report.hosts.agreement import build_contrasts, hosts_speedups
from gilscope.toolkit.report.hosts.tables import hosts_table, side_by_side, warnings
from gilscope.toolkit.report.hosts.wording import BEST, EACH, agreement_text
from gilscope.toolkit.report.sessions import scope_of_hosts
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.hosts.agreement import MeasuredHost
    from gilscope.toolkit.store import Host


def hosts_document(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Document:
    """Return the report of what several hosts measured.

    Args:
        label: What they are called together.
        hosts: One or more.
        states: How all hosts of a fleet stand; (): nobody says, as of runs that were copied together.
    """
    speedups, contrasts, names = hosts_speedups(hosts), build_contrasts(hosts), [host.name for host in hosts]
    sections: list[Section] = [
        *_beginning(label, hosts, states),
        side_by_side(f"Speed-up over {hosts[0].run.baseline}", speedups, names), Lines("", (BEST, EACH)),
    ]
    if compared := [each for each in contrasts if each.by]:
        title = "How many times faster the first build is, by the CPU time of one worker"
        sections.append(side_by_side(title, compared, names))
    sections.append(summary_lines((agreement_text(speedups),)))
    if states:
        own = f"`gilscope report {label}/{hosts[0].names[0]}` has the tables of that host alone."
        sections.append(Lines("", (own,)))
    return Document(tuple(sections))


def _beginning(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host]) -> list[Section]:
    started = sorted(host.run.started for host in hosts)
    when = started[0] if started[0] == started[-1] else f"{started[0]} to {started[-1]}"
    scope = scope_of_hosts([host.run for host in hosts])
    about = Lines("", (f"{counted(len(hosts), 'host')}, started {when}; {scope}",))
    return [Heading(f"gilscope {label}", 1), about, *warnings(hosts, states), hosts_table(hosts, states)]
