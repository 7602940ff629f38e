"""The answer of a run on one screen: the speed-ups, what to use on each build, what that costs, and what is open."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.advice_sentences import MIB, advice_lines, dispatch_texts, name_text, next_steps
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.document import Column, Document, Entry, GainValue, Lines, Section, Table
from gilscope.toolkit.report.overview import (
    build_lines,
    ceiling_lines,
    failures,
    gains_table,
    measured_workers,
    signs_text,
    title_of,
)
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table import build_tables
from gilscope.toolkit.report.wording import first_text, or_text
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.table import Advice, MetricValue, WorkloadTable

PROCESSES = "processes-"
NAMED = 2   # so many models that are equally good are named, of more the preferred one; the star is at all of them


def answer_document(run: Run) -> Document:
    """Return the answer of a run, in at most 24 lines for a quick look."""
    tables = build_tables(run)
    steady = [table for table in tables if table.phase is Phase.STEADY]
    sections: list[Section] = []
    if any(measured_workers(table) for table in steady):
        gains = _bare(gains_table(steady, f"{_about(run)}: speed-up"))
        legend = f"{signs_text(gains, steady)}; MiB: of all its processes."
        sections += [gains, Lines("", (legend,)), _models_to_use(steady)]
    else:
        sections += [Lines("", (f"{_about(run)}.",)), Lines("", advice_lines(tables))]
    return Document((*sections, Lines("", tuple(_closing(run, tables)))))


def _about(run: Run) -> str:
    """Return what was measured: builds, machine, rounds."""
    builds = list_text(build.label for build in run.builds)
    machine = f"{run.machine.cpu_model} with {counted(run.machine.cores, 'core')}"
    scope = f", {scope_text(run)}" if len(run.sessions) > 1 else ""
    return f"{builds}, {machine}, {counted(run.rounds_done, 'round')}{scope}"


def _bare(table: Table) -> Table:
    """Return a table of speed-ups without intervals and footnotes."""
    def bare(entry: Entry) -> Entry:
        value = entry.value
        return Entry(replace(value, bare=True) if isinstance(value, GainValue) else value)

    return replace(table, rows=tuple(tuple(map(bare, row)) for row in table.rows), footnotes=())


def _models_to_use(tables: Sequence[WorkloadTable]) -> Table:
    """Return what to use for each workload on each build, with the memory of all its processes."""
    builds = list(dict.fromkeys(build for table in tables for build in table.builds))
    processes = {row.runner for table in tables for row in table.rows if row.runner.startswith(PROCESSES)}
    short = dict.fromkeys(processes, PROCESSES.rstrip("-")) if len(processes) == 1 else {}
    rows = []
    for table in tables:
        advice = {each.build: each for each in table.advice}
        texts = [_use_text(table, advice.get(build), short) for build in builds]
        rows.append((Entry(title_of(table)), *map(Entry, texts)))
    return Table(title="", columns=(
        Column(title="use (MiB)", key=True, align="left"),
        *(Column(title=build, align="left", source=build) for build in builds)), rows=tuple(rows))


def _use_text(table: WorkloadTable, advice: Advice | None, short: Mapping[str, str]) -> str:
    """Return the models to use, the preferred one first, then by memory; `short` has shorter names."""
    if advice is None or advice.missing is not None:
        return f"unknown: {table.baseline} has no number"
    if not advice.shown and not advice.open:
        return "-"
    if advice.options:
        first, *others = advice.options
        others.sort(key=lambda option: option.memory.number if option.memory else inf)
        names = ((name_text(option, table), option.memory) for option in (first, *others))
        named = [short.get(name, name) + _memory(memory) for name, memory in names]
        return or_text(named if len(named) <= NAMED else [named[0], f"{len(named) - 1} more"])
    if any(each.why != "failed" for each in advice.open):
        return "undecided"
    return table.baseline + _memory(advice.memory)


def _memory(found: MetricValue | None) -> str:
    return "" if found is None else f" {found.number / MIB:.0f}"


def _closing(run: Run, tables: Sequence[WorkloadTable]) -> Iterator[str]:
    """Yield what free-threading costs one thread, what failed, what is open, and the gravest caution."""
    steady = [table for table in tables if table.phase is Phase.STEADY]
    lines, undecided = build_lines(steady, run, intervals=False)
    yield from lines
    yield from dict.fromkeys(text for table in steady for advice in table.advice for text in dispatch_texts(advice))
    yield from ceiling_lines(steady, run)
    if failed := list(failures(tables)):
        yield f"failed: {first_text(failed)}"
    yield from islice(next_steps(tables, run, undecided), 1)
    if steady:
        yield f"intervals, times and reasons: `gilscope report {run.label} --full`"
    if warnings := cautions(run):
        yield f"careful: {first_text(warnings)}"
