"""The document of a run; those of comparisons are in `comparison`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase, SkipKind
from gilscope.toolkit.report.answer import answer_sections
from gilscope.toolkit.report.cautions import cautions, stopping_text
from gilscope.toolkit.report.document import (
    Banner,
    Column,
    Document,
    Entry,
    Heading,
    Lines,
    Quantity,
    RatioValue,
    Section,
    Table,
)
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.provenance import run_sections
from gilscope.toolkit.report.sessions import MERGED, scope_text, session_lines
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table_sentences import noise_line, spread_line, times_scope, title_text
from gilscope.toolkit.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Run, RunEnd
    from gilscope.toolkit.report.table.cell_results import CellResult, TableRow
    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import MetricValue


OUTPUTS = 5         # shown of failed processes, one for each reason; run.json has all of them
OUTPUT_LINES = 30   # of each: enough for a traceback and the worker's traceback that caused it


_ENDINGS: dict[RunEnd, str] = {
    "answered": "stopped: every answer is clear",
    "resolution": "stopped: every answer is clear, and as precise as --resolution requires",
    "starved": "stopped: other programs used the cores",
}


def run_document(run: Run, tables: Sequence[WorkloadTable] | None = None) -> Document:
    """Return the report of one run: the answer, what was measured, and each workload's table.

    Args:
        run: The run.
        tables: The tables of the run if they exist already.
    """
    tables = build_tables(run) if tables is None else tables
    sections = [*beginning(run), *answer_sections(tables, run), *run_sections(run)]
    for table in tables:
        sections += _workload(table)
    return Document((*sections, *_outputs(run)))


def _outputs(run: Run) -> Iterator[Section]:
    """Yield the last output of failed processes, once for each reason; tables have only one line of a traceback."""
    first = {failure.reason: failure for failure in reversed(run.failures)}
    for failure in sorted(first.values(), key=run.failures.index)[:OUTPUTS]:
        if lines := failure.output.rstrip().splitlines()[-OUTPUT_LINES:]:
            cell = failure.cell
            yield Lines(f"Last output of {cell.workload}, {cell.runner}, on {cell.build} in round {failure.round + 1}",
                        tuple(lines))


def beginning(run: Run) -> list[Section]:
    """Return the head of the report of a run: its title, what it is about, and its warnings."""
    return [Heading(f"gilscope {run.label}", 1), about(run), *map(Banner, cautions(run))]


def about(run: Run) -> Lines:
    """Return the lines with machine, start and rounds of a run."""
    machine = run.machine
    memory = "" if machine.memory_bytes is None else f", {format_bytes(machine.memory_bytes)}"
    return Lines("", (
        f"started {run.started} on {machine.cpu_model} ({machine.cores} cores{memory}), {machine.system}",
        *_rounds_lines(run),
    ))


def _rounds_lines(run: Run) -> Iterator[str]:
    """Yield the number of rounds and why there are no more, and the rounds of the cells if they differ."""
    ended = _ENDINGS.get(run.stopped, f"ended by: {run.stopped}")
    seed = "" if MERGED in run.options else f"; seed {run.seed}"   # each host has its own
    yield f"{run.rounds_done} of {run.rounds_planned} rounds{_cut_text(run)} {scope_text(run)}, {ended}{seed}"
    yield from session_lines(run)
    if stopping := stopping_text(run):
        yield stopping


def _cut_text(run: Run) -> str:
    """Return how much of the last round is missing if the budget ended within it, else ""."""
    cut = sum(skip.kind == SkipKind.OUT_OF_BUDGET and not skip.cell.twin for skip in run.skips)
    if not cut:
        return ""
    cells = sum(not cell.twin for cell in run.cells)
    last = "the last one " if run.rounds_done > 1 else ""
    return f" ({last}incomplete: {cut} of {counted(cells, 'cell')} not measured)"


def _workload(table: WorkloadTable) -> list[Section]:
    sections: list[Section] = [Heading(title_text(table)), _matrix(table)]
    notes = (f"Note: {note.text}." for note in table.notes)
    spread = filter(None, [spread_line(table.times)])
    sections.append(Lines("", (noise_line(table.floors), *spread, *times_scope(table.speedups), *notes)))
    if overhead := overhead_table(table):
        sections.append(overhead)
    return sections


def _matrix(table: WorkloadTable) -> Table:
    metrics = table.metric_columns
    columns = [Column(title="model", key=True, align="left"), Column(title="N", key=True)]
    for build in table.builds:
        columns += [
            Column(title=_time_title(table.phase), group=build), Column(title=f"vs {table.baseline}", group=build),
            Column(title="eff.", group=build, detail=True), Column(title="CPU", group=build, detail=True),
            *(Column(title=each, group=build, detail=True) for each in metrics),
        ]
    notes = Footnotes()
    rows = []
    for same in _folded(table.rows):
        row = same[0]
        workers = ",".join(str(each.workers) for each in same)
        entries = [entry for result in row.results for entry in _entries(result, metrics, notes)]
        rows.append((Entry(row.runner), Entry(workers), *entries))
    return Table(title="", columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _time_title(phase: Phase) -> str:
    return "open+run+close" if phase is Phase.STARTUP else "time"


def _folded(rows: Sequence[TableRow]) -> list[list[TableRow]]:
    """Return the rows, those of a runner that has no number anywhere, and one reason per build, as one."""
    folded: list[list[TableRow]] = []
    for row in rows:
        last = folded[-1][0] if folded else None
        if last is not None and last.runner == row.runner and _reasons(row) and _reasons(row) == _reasons(last):
            folded[-1].append(row)
        else:
            folded.append([row])
    return folded


def _reasons(row: TableRow) -> list[str] | None:
    """Return why each cell has no number to show; None when one has."""
    reasons = [result.absence.reason for result in row.results if result.absence is not None]
    return reasons if len(reasons) == len(row.results) else None


def _entries(result: CellResult, metrics: Sequence[str], notes: Footnotes) -> tuple[Entry, ...]:
    """Return the columns of one build."""
    empty = [Entry()] * (2 + len(metrics))
    if result.absence is not None:
        return (Entry(result.absence.word, notes.marks([result.absence.reason])), Entry(), *empty)
    time, efficiency = Entry(), Entry()
    if result.efficiency is not None and result.cell.workers > 1:   # with one worker it is the ratio once more
        efficiency = Entry(Quantity(result.efficiency, "share"))
    if result.time is not None:
        spread = result.time.spread if result.time.count > 1 else None
        time = Entry(Quantity(result.time.center, "seconds", spread), notes.marks(note.text for note in result.notes))
    return (
        time, Entry() if result.speedup is None else Entry(RatioValue(result.speedup)),
        efficiency,
        Entry() if result.cpu_inflation is None else Entry(Quantity(result.cpu_inflation, "x")),
        *(_metric_entry(result.metrics.get(each), notes) for each in metrics),
    )


def _metric_entry(found: MetricValue | None, notes: Footnotes) -> Entry:
    if found is None:
        return Entry()
    marks = notes.marks([found.metric.footnote]) if found.metric.footnote else ()
    return Entry(Quantity(found.number, found.metric.unit), marks)


def overhead_table(table: WorkloadTable) -> Table | None:
    """Return the table of CPU time of one worker, build against build; None if nothing was compared."""
    contrasts = [each for each in table.contrasts if each.sample.workers == 1 and each.comparison is not None]
    if not contrasts:
        return None
    pairs = list(dict.fromkeys((each.baseline.build, each.sample.build) for each in contrasts))
    runners = list(dict.fromkeys(each.sample.runner for each in contrasts))
    by_pair = {(each.sample.runner, each.baseline.build, each.sample.build): each for each in contrasts}
    notes = Footnotes()
    rows = tuple((Entry(runner), *(_cost(by_pair.get((runner, a, b)), notes) for a, b in pairs)) for runner in runners)
    return Table(
        title="Build against build: CPU time of one worker (+ takes more)",
        columns=(Column(title="model", key=True, align="left"), *(
            Column(title=f"{b} vs {a}", source=b) for a, b in pairs)),
        rows=rows, footnotes=notes.texts(),
    )


def _cost(contrast: Contrast | None, notes: Footnotes) -> Entry:
    if contrast is None or contrast.comparison is None:
        return Entry("-")
    return Entry(RatioValue(contrast.comparison, "cost"), notes.marks(note.text for note in contrast.lacking_sessions))
