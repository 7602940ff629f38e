"""The report of one request on several hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.comparison import workload_text
from gilscope.toolkit.report.document import Document, Heading, Lines, Section, summary_lines, with_scope
from gilscope.toolkit.report.hosts.agreement import hosts_contrasts, hosts_speedups
from gilscope.toolkit.report.hosts.tables import count_text, hosts_table, side_by_side, unknown_hosts, warnings
from gilscope.toolkit.report.hosts.wording import EACH, PERHAPS_ONE, agreement_text, cautions_of_all, names_text
from gilscope.toolkit.report.sessions import scope_of_runs
from gilscope.toolkit.units import list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsRatio, MeasuredHost
    from gilscope.toolkit.report.table import Advice
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
        side_by_side(f"Speed-up over {hosts[0].run.baseline}", speedups, names), Lines("", (EACH,)),
    ]
    if compared := [each for each in contrasts if each.by]:
        title = "How many times faster the first build is, by the CPU time of one worker"
        sections.append(side_by_side(title, compared, names))
    sections.append(summary_lines((
        *_best_lines(hosts), agreement_text(speedups, "speed-up"),
        *([PERHAPS_ONE] if unknown_hosts(hosts, states) else []))))
    if states:
        own = f"`gilscope report {label}/{hosts[0].names[0]}` has the tables of that host alone."
        sections.append(Lines("", (own,)))
    return with_scope(Document(tuple(sections)), scope_of_runs([host.run for host in hosts]))


def build_contrasts(hosts: Sequence[MeasuredHost]) -> tuple[HostsRatio, ...]:
    """Compare the CPU time of one worker on two builds, on each host."""
    return hosts_contrasts({
        host.name: [each for table in host.tables for each in table.contrasts if each.sample.workers == 1]
        for host in hosts})


def _beginning(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host]) -> list[Section]:
    started = sorted(host.run.started for host in hosts)
    when = started[0] if started[0] == started[-1] else f"{started[0]} to {started[-1]}"
    about = Lines("", (f"{count_text(hosts, states)}, started {when}; each measured in rounds of its own",
                       *stopping_lines(hosts)))
    return [Heading(f"gilscope {label}", 1), about, *warnings(hosts, states), hosts_table(hosts, states)]


def stopping_lines(hosts: Sequence[MeasuredHost]) -> list[str]:
    """Return how early stopping biases ratios, by host."""
    return cautions_of_all((host.name, filter(None, [host.stopping])) for host in hosts)


def _best_lines(hosts: Sequence[MeasuredHost]) -> Iterator[str]:
    """Yield the models to use, with the number of hosts on which no model is significantly faster."""
    baseline = hosts[0].run.baseline
    found: dict[str, dict[str, Advice]] = {}
    for host in hosts:
        for table in host.tables:
            for advice in table.advice:
                title = f"{workload_text(table.rows[0].results[0].cell)} on {advice.build}"
                found.setdefault(title, {})[host.name] = advice
    for title, each in found.items():
        advices = {name: advice for name, advice in each.items() if advice.missing is None}
        by: dict[str, list[str]] = {}
        for name, advice in advices.items():
            for runner in dict.fromkeys(option.cell.runner for option in advice.options):
                by.setdefault(runner, []).append(name)
        if not advices:
            yield f"{title}: unknown, since {baseline} has no number on any host."
        elif not by:
            unclear = [name for name, advice in advices.items() if advice.open]
            rest = f"; {names_text(unclear)} cannot tell for some models" if unclear else ""
            yield f"{title}: no model is significantly faster than {baseline} on any host{rest}."
        else:
            best = sorted(by.items(), key=lambda item: -len(item[1]))
            parts = [f"{runner} on {len(names)} of {len(advices)}" for runner, names in best]
            yield f"{title}: among the best {'is' if len(parts) == 1 else 'are'} {list_text(parts)}."
