"""The report of one request on several hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.advice_sentences import counts_text
from gilscope.toolkit.report.comparison import workload_text
from gilscope.toolkit.report.document import Column, Document, Heading, Lines, Section, Table, summary_lines, with_scope
from gilscope.toolkit.report.hosts.agreement import hosts_contrasts, hosts_tables
from gilscope.toolkit.report.hosts.tables import count_text, hosts_table, over_tables, unknown_hosts, warnings
from gilscope.toolkit.report.hosts.wording import (
    ALL,
    EACH,
    HOLDS,
    NEXT,
    PERHAPS_ONE,
    SPREAD,
    cautions_of_all,
    changing_text,
    names_text,
    words_text,
)
from gilscope.toolkit.report.sessions import scope_of_runs
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import cost_text, interval_text
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import counted, inflect, list_text

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsContrast, HostsTable, MeasuredHost
    from gilscope.toolkit.store import Host

CHANGES = 6   # of cells that change between hosts: shown; the tables have all of them
KEYS = (Column(title="model", key=True, align="left"), Column(title="N", key=True))


def hosts_document(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Document:
    """Return the report of what several hosts measured.

    Args:
        label: What they are called together.
        hosts: One or more.
        states: How all hosts of a fleet stand; (): nobody says, as of runs that were copied together.
    """
    tables, contrasts = hosts_tables(hosts), build_contrasts(hosts)
    names = [host.name for host in hosts]
    sections: list[Section] = [
        *_beginning(label, hosts, states), _in_short(hosts, tables, contrasts, states),
        Lines("How to read the tables", (ALL, SPREAD, NEXT, HOLDS, EACH)),
    ]
    for table in tables:
        sections += [Heading(f"{title_text(table.first)}, on {table.build}"), *over_tables(
            f"Speed-up over {table.first.baseline}", KEYS,
            [((row.cell.runner, str(row.cell.workers)), row.over) for row in table.rows], names)]
    if any(each.over.by for each in contrasts):
        sections += [Heading("Build against build, CPU time of one worker"), *_builds_tables(contrasts, names)]
    if states:
        own = f"`gilscope report {label}/{hosts[0].names[0]}` has the tables of that host alone."
        sections.append(Lines("", (own,)))
    return with_scope(Document(tuple(sections)), scope_of_runs([host.run for host in hosts]))


def hosts_overview(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Document:
    """Return the overview of several hosts, on one screen; the arguments are those of `hosts_document`."""
    in_short = _in_short(hosts, hosts_tables(hosts), build_contrasts(hosts), states)
    rest = (f"`gilscope report {label}` has every cell over all hosts, `gilscope report {label}/{hosts[0].name}` the "
            "tables of that host alone.")
    sections = (*_beginning(label, hosts, states), in_short, Lines("", (rest,)))
    return with_scope(Document(sections), scope_of_runs([host.run for host in hosts]))


def build_contrasts(hosts: Sequence[MeasuredHost]) -> tuple[HostsContrast, ...]:
    """Compare the CPU time of one worker on two builds, over hosts."""
    return hosts_contrasts({
        host.name: [each for table in host.tables for each in table.contrasts if each.sample.workers == 1]
        for host in hosts
    }, max((host.run.looks for host in hosts), default=0))


def _beginning(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host]) -> list[Section]:
    started = sorted(host.run.started for host in hosts)
    when = started[0] if started[0] == started[-1] else f"{started[0]} to {started[-1]}"
    about = Lines("", (f"{count_text(hosts, states)}, started {when}; each measured in rounds of its own",
                       *stopping_lines(hosts)))
    return [Heading(f"gilscope {label}", 1), about, *warnings(hosts, states), hosts_table(hosts, states)]


def stopping_lines(hosts: Sequence[MeasuredHost]) -> list[str]:
    """Return how early stopping biases ratios, by host."""
    return cautions_of_all((host.name, filter(None, [host.stopping])) for host in hosts)


def _builds_tables(contrasts: Sequence[HostsContrast], names: Sequence[str]) -> list[Table]:
    keys = (Column(title="workload", key=True, align="left"), Column(title="model", key=True, align="left"),
            Column(title="builds", key=True, align="left"))
    return over_tables("How many times faster the second build is", keys, [
        ((title_text(each.contrast.sample), each.contrast.sample.runner,
          f"{each.contrast.sample.build} vs {each.contrast.baseline.build}"), each.over)
        for each in contrasts if each.over.by
    ], names)


def _in_short(
    hosts: Sequence[MeasuredHost], tables: Sequence[HostsTable], contrasts: Sequence[HostsContrast],
    states: Sequence[Host],
) -> Lines:
    free = {build.label for host in hosts for build in host.run.builds if build.free_threaded}
    return summary_lines((
        *_best_lines(hosts, tables), *_cost_lines(contrasts, hosts[0].run.baseline, free), *_holding_lines(tables),
        *([PERHAPS_ONE] if unknown_hosts(hosts, states) else [])))


def _best_lines(hosts: Sequence[MeasuredHost], tables: Sequence[HostsTable]) -> Iterator[str]:
    """Yield the models to use, with the number of hosts on which no model is significantly faster."""
    for table in tables:
        advices = {
            host.name: advice for host in hosts for own in host.tables
            if title_text(own) == title_text(table.first) for advice in own.advice
            if advice.build == table.build and advice.missing is None
        }
        if not advices:
            yield f"{_title(table)}: unknown, since {table.first.baseline} has no number on any host."
            continue
        by: dict[str, list[str]] = {}
        for name, advice in advices.items():
            for runner in dict.fromkeys(option.cell.runner for option in advice.options):
                by.setdefault(runner, []).append(name)
        if not by:
            unclear = [name for name, advice in advices.items() if advice.open]
            rest = f"; {names_text(unclear)} cannot tell for some models" if unclear else ""
            yield f"{_title(table)}: no model is significantly faster than {table.first.baseline} on any host{rest}."
            continue
        best = sorted(by.items(), key=lambda each: -len(each[1]))
        parts = [f"{runner} on {len(names)} of {len(advices)}{_gain(table, runner)}" for runner, names in best]
        yield f"{_title(table)}: among the best {'is' if len(parts) == 1 else 'are'} {list_text(parts)}."


def _gain(table: HostsTable, runner: str) -> str:
    """Return the gain of a model over hosts, at the number of workers that gains most: " (1.88x [1.80, 1.96])"."""
    gains = [(row.cell.workers, row.over.pooled.comparison) for row in table.rows
             if row.cell.runner == runner and row.over.pooled is not None]
    if not gains:
        return ""
    workers, most = max(gains, key=lambda each: each[1].ratio)
    with_them = f" with {counts_text(runner, [workers])}" if len(gains) > 1 else ""
    return f" ({interval_text(most)}{with_them})"


def _title(table: HostsTable) -> str:
    return f"{workload_text(table.rows[0].cell)} on {table.build}"


def _cost_lines(contrasts: Sequence[HostsContrast], alone: str, free: Container[str]) -> Iterator[str]:
    """Yield the cost of free-threaded builds for one thread over hosts: of the model `alone`, on the builds `free`."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for each in contrasts:
        baseline, sample, pooled = each.contrast.baseline, each.contrast.sample, each.over.pooled
        is_cost = sample.build in free and baseline.build not in free and sample.phase is Phase.STEADY
        if is_cost and pooled is not None and sample.runner == alone:
            pairs.setdefault((sample.build, baseline.build), []).append(
                f"{sample.workload} {cost_text(pooled.comparison)} ({words_text(each.over)})")
    for (build, gil_build), found in pairs.items():
        yield (f"Cost of these builds of {build} against those of {gil_build}, over all hosts "
               f"(CPU time of one thread): {'; '.join(found)}.")


def _holding_lines(tables: Sequence[HostsTable]) -> Iterator[str]:
    """Yield the number of ratios that hold on every host, and those that do not."""
    rows = [(table, row) for table in tables for row in table.rows if row.over.agreement.hosts > 1]
    if not rows:
        yield "No speed-up is known on more than one host, so nothing shows whether any holds elsewhere."
        return
    changing = [(table, row) for table, row in rows if row.over.agreement.changes]
    undecided = sum(row.over.agreement.word == SpeedVerdict.CANNOT_TELL for _, row in rows)
    everywhere = sum(row.over.agreement.word != SpeedVerdict.CANNOT_TELL and not row.over.agreement.others
                     for _, row in rows)
    rest = len(rows) - len(changing) - undecided - everywhere
    parts = [f"{everywhere} {inflect(everywhere, 'holds', 'hold')} on every host",
             f"{rest} {inflect(rest, 'holds', 'hold')} on each that can tell" if rest else "",
             f"{len(changing)} {inflect(len(changing), 'changes', 'change')} between hosts",
             f"{undecided} {inflect(undecided, 'has', 'have')} no verdict on any host" if undecided else ""]
    yield f"Of {counted(len(rows), 'speed-up')} known on more than one host, {list_text(filter(None, parts))}."
    for table, row in changing[:CHANGES]:
        agreement = row.over.agreement
        words = {str(agreement.word): agreement.holds, **{str(word): names for word, names in agreement.others.items()}}
        runner, workers = row.cell.runner, row.cell.workers
        yield f"Changes: {runner} with {counts_text(runner, [workers])} of {_title(table)}: {changing_text(words)}."
    if len(changing) > CHANGES:
        more = len(changing) - CHANGES
        yield f"And {more} more {inflect(more, 'changes', 'change')}: the tables have them."

