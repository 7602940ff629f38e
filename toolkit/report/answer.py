"""The answer of a run: the speed-ups, what to use on each build, what that costs, and what is open."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.closing_lines import closing_lines
from gilscope.toolkit.report.document import Column, Document, Entry, GainValue, Lines, Section, Table, summary_lines
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table_sentences import counts_text, title_text
from gilscope.toolkit.report.wording import SHOWN_SPREAD, first_text, gain_form, or_text
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.table.cell_results import CellResult
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import MetricValue
    from gilscope.toolkit.report.table.recommendation import Advice, Option

MIB = 1024 * 1024
PROCESSES = "processes-"
NAMED = 2   # so many models that are equally good are named, of more the preferred one; the star is at all of them
_WHY = {"rounds": "too few rounds", "floor": "unknown noise", "noise": "undecided"}   # others say it themselves


def answer_document(run: Run) -> Document:
    """Return the answer of a run, in at most 24 lines for a quick look."""
    tables = build_tables(run)
    builds = list_text(build.label for build in run.builds)
    machine = f"{run.machine.cpu_model} with {counted(run.machine.cores, 'core')}"
    scope = f", {scope_text(run)}" if len(run.sessions) > 1 else ""
    about = f"{builds}, {machine}, {counted(run.rounds_done, 'round')}{scope}"
    sections: list[Section] = []
    for of_phase, gains in _gains_tables(tables, f"{about}: speed-up"):
        bare = _bare(gains)
        sections += [bare, Lines("", (f"{_signs_text(bare, of_phase)}.",))]
    sections = sections or [Lines("", (f"{about}.",))]
    warnings = cautions(run)
    closing = (
        *closing_lines(tables, run, full=False), f"intervals, times and reasons: `gilscope report {run.label} --full`",
        *([f"careful: {first_text(warnings)}"] if warnings else []))
    return Document((*sections, _models_to_use(tables, "", NAMED), Lines("", closing)))


def answer_sections(tables: Sequence[WorkloadTable], run: Run) -> Iterator[Section]:
    """Yield the same with intervals, footnotes and all failures, as a full report has it."""
    for of_phase, gains in _gains_tables(tables, "Speed-up"):
        yield gains
        yield Lines("", (f"{_signs_text(gains, of_phase)}.",))
    if tables:
        yield _models_to_use(tables, "What to use")
    if closing := tuple(closing_lines(tables, run, full=True)):
        yield summary_lines(closing)


def _gains_tables(tables: Sequence[WorkloadTable], title: str) -> Iterator[tuple[Sequence[WorkloadTable], Table]]:
    """Yield the tables of each phase that has numbers, with the speed-up of each model for each workload and build."""
    for phase in Phase:
        group = [table for table in tables if table.phase is phase]
        if any(map(_measured_workers, group)):
            yield group, _gains_table(group, title)


def _gains_table(tables: Sequence[WorkloadTable], title: str) -> Table:
    usual = max(workers for table in tables for workers in _measured_workers(table))
    runners = dict.fromkeys(row.runner for table in tables for row in table.rows)
    columns = [(table, i) for table in tables for i in range(len(table.builds))]
    notes = Footnotes()
    rows = [(runner, [_entry(table, i, runner, usual, notes) for table, i in columns]) for runner in runners]
    # Models with a number first.
    rows.sort(key=lambda row: not any(isinstance(entry.value, GainValue) for entry in row[1]))
    return Table(
        title=f"{title} over {tables[0].baseline} of the same build, {counts_text(tables[0].baseline, [usual])}",
        columns=(Column(title="model", key=True, align="left"), *(
            Column(title=table.builds[i], group=title_text(table), align="left", source=table.builds[i])
            for table, i in columns)),
        rows=tuple(
            (Entry(runner), *entries) for runner, entries in rows
            if runner != tables[0].baseline and any(entry.value != "-" for entry in entries)
        ),
        footnotes=notes.texts(),
    )


def _measured_workers(table: WorkloadTable) -> list[int]:
    """Return the worker counts of all cells with a ratio to show, and of those that were starved."""
    starved = (result for row in table.rows for result in row.results
               if result.absence is not None and result.absence.word == "starved")
    return [*(option.cell.workers for advice in table.advice for option in advice.shown),
            *(result.cell.workers for result in starved)]


def _entry(table: WorkloadTable, build: int, runner: str, usual: int, notes: Footnotes) -> Entry:
    advice = table.advice[build]
    option = next((each for each in advice.shown if each.cell.runner == runner), None)
    if option is not None:
        workers = option.cell.workers
        (result,) = (row.results[build] for row in table.rows if row.results[build].cell == option.cell)
        return Entry(GainValue(
            option.speedup, best=bool(advice.faster) and option.cell in advice.best,
            workers=None if workers == usual else workers,
        ), notes.marks(note.text for note in result.footnotes))
    results = [row.results[build] for row in table.rows if row.runner == runner]
    return _absent(results[-1]) if results else Entry("-")


def _absent(result: CellResult) -> Entry:
    word = "" if result.absence is None else result.absence.word
    return Entry(word if word in {"failed", "starved"} else "-")


def _bare(table: Table) -> Table:
    """Return a table of speed-ups without intervals and footnotes."""
    def bare(entry: Entry) -> Entry:
        value = entry.value
        return Entry(replace(value, bare=True) if isinstance(value, GainValue) else value)

    return replace(table, rows=tuple(tuple(map(bare, row)) for row in table.rows), footnotes=())


def _gains(table: Table) -> list[GainValue]:
    return [entry.value for row in table.rows for entry in row if isinstance(entry.value, GainValue)]


def _signs_text(table: Table, tables: Sequence[WorkloadTable]) -> str:
    """Return the meaning of each sign that occurs in a table of speed-ups of these workloads."""
    gains = _gains(table)
    words = {entry.value for row in table.rows for entry in row if isinstance(entry.value, str)}
    forms = {gain_form(gain.comparison) for gain in gains}
    parts = [
        ("*: no other is known to be faster",
         any(gain.best and gain_form(gain.comparison) != "range" for gain in gains)),
        (_none_text(gains), "none" in forms),
        ("?: may gain or not", "range" in forms),
        ("-: not measured", "-" in words),
        (f"±: 95 % interval of a speed-up, where wider than {SHOWN_SPREAD * 100:g} %",
         "spread" in forms and not all(gain.bare for gain in gains)),
        ("N: workers", any(gain.workers is not None for gain in gains)),
        ("starved: other programs used the cores that it needed", "starved" in words),
        (control := control_text(tables), bool(control)),
        ("MiB: all processes", True),
    ]
    return "; ".join(text for text, there in parts if there)


def _none_text(gains: Iterable[GainValue]) -> str:
    """Return the meaning of "none", and that the tables of the workloads may show a loss for such a cell."""
    open_below = any(gain_form(gain.comparison) == "none" and gain.comparison.verdict() != SpeedVerdict.SAME
                     for gain in gains)
    return f"none: gains at most {MARGIN * 100:g} %{', or loses' if open_below else ''}"


def control_text(tables: Iterable[WorkloadTable]) -> str:
    """Return which model was measured with a GIL that was turned on for comparison; "" if none was."""
    cells = [option.cell for table in tables for advice in table.advice for option in advice.shown if option.control]
    if not cells:
        return ""
    runners, builds = ([*dict.fromkeys(names)] for names in (
        (cell.runner for cell in cells), (cell.build for cell in cells)))
    return f"{list_text(runners)} on {list_text(builds)}: with the GIL turned on"


def _models_to_use(tables: Sequence[WorkloadTable], title: str, most: float = inf) -> Table:
    """Return what to use for each workload on each build, with the memory of all its processes."""
    builds = list(dict.fromkeys(build for table in tables for build in table.builds))
    processes = {row.runner for table in tables for row in table.rows if row.runner.startswith(PROCESSES)}
    short = dict.fromkeys(processes, PROCESSES.rstrip("-")) if len(processes) == 1 else {}
    rows = []
    for table in tables:
        advice = {each.build: each for each in table.advice}
        texts = (_use_text(table, advice[build], short, most) for build in builds)
        rows.append((Entry(title_text(table)), *map(Entry, texts)))
    return Table(title=title, columns=(
        Column(title="use (MiB)", key=True, align="left"),
        *(Column(title=build, align="left", source=build) for build in builds)), rows=tuple(rows))


def _use_text(table: WorkloadTable, advice: Advice, short: Mapping[str, str], most: float) -> str:
    """Return the models to use, the preferred one first, then by memory; of more than `most` that one and a number."""
    if not advice.options:
        return without_option(table, advice) or table.baseline + _memory(advice.memory)
    first, *others = advice.options
    others.sort(key=lambda option: option.memory.number if option.memory else inf)
    names = ((_name_text(option, table), option.memory) for option in (first, *others))
    named = [short.get(name, name) + _memory(memory) for name, memory in names]
    return or_text(named if len(named) <= most else [named[0], f"{len(named) - 1} others"])


def without_option(table: WorkloadTable, advice: Advice) -> str:
    """Return why nothing says what to use where no model is faster; "" if that is known: the baseline."""
    if advice.missing is not None and not advice.open:
        return f"unknown: {table.baseline} has no number"
    whys = dict.fromkeys(_WHY.get(each.why, each.why) for each in advice.open)
    if not advice.shown and not whys:
        return "nothing to compare"
    return ", ".join(whys) if whys.keys() - {"failed"} or not advice.shown else ""


def _memory(found: MetricValue | None) -> str:
    return "" if found is None else f" {found.number / MIB:.0f}"


def _name_text(option: Option, table: WorkloadTable) -> str:
    """Return an option's model, with its number of workers unless that is the largest."""
    cell, widest = option.cell, max(row.workers for row in table.rows)
    return cell.runner if cell.workers == widest else f"{cell.runner} with {counts_text(cell.runner, [cell.workers])}"
