"""The overview on one screen: every workload and model in one table, then the answer in sentences."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase, SkipKind
from gilscope.toolkit.report.advice_sentences import advice_lines, counts_text, next_steps
from gilscope.toolkit.report.document import Column, Entry, GainValue, Lines, Section, Table, summary_lines
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import (
    SHOWN_SPREAD,
    beside,
    gain_form,
    interval_text,
    limits_text,
    price_text,
    range_of,
    ratio_number,
)
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import format_seconds, list_text

FAILURES = 3   # shown; the tables have all of them

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import CellResult, WorkloadTable
    from gilscope.toolkit.stats.verdict import Comparison


def overview(tables: Sequence[WorkloadTable], run: Run) -> list[Section]:
    """Return the table of all workloads and models and its sentences; without a steady cell only the sentences."""
    sections: list[Section] = []
    steady = [table for table in tables if table.phase is Phase.STEADY]
    if any(measured_workers(table) for table in steady):
        table = gains_table(steady)
        sections += [table, Lines("", tuple(_legend(table, steady)))]
    if remarks := tuple(_baseline_remarks(tables)):
        sections.append(Lines("Note", remarks))
    for title, found in (("Failed", [*failures(tables)]), ("Skipped", [*_work_skips(tables)])):
        more = [f"and {len(found) - FAILURES} more"] if len(found) > FAILURES else []
        if found:
            sections.append(Lines(title, (*found[:FAILURES], *more)))
    if tables:
        sections.append(summary_lines((*advice_lines(tables), *closing_lines(tables, run))))
    return sections


def _baseline_remarks(tables: Iterable[WorkloadTable]) -> Iterator[str]:
    """Yield the notes on processes of the baselines, which have no number in the table."""
    for table in tables:
        for result in (result for row in table.rows for result in row.results if result.is_baseline):
            for note in result.footnotes:
                yield f"{result.cell.runner} of {title_of(table)} on {result.cell.build}: {note.text}"


def failures(tables: Iterable[WorkloadTable]) -> Iterator[str]:
    """Yield the failed cells with their reason, each reason once; failures of the baseline stand in the advice."""
    about: dict[str, dict[str, None]] = {}
    for table in tables:
        for result in (result for row in table.rows for result in row.results):
            absence, cell = result.absence, result.cell
            if absence is not None and absence.word == "failed" and cell.runner != table.baseline:
                about.setdefault(absence.reason, {})[f"{cell.runner} of {title_of(table)} on {cell.build}"] = None
    for reason, cells in about.items():
        yield f"{list_text(cells)}: {reason}"


def _work_skips(tables: Iterable[WorkloadTable]) -> Iterator[str]:
    """Yield the models and builds that cannot run a workload, with the reason, each reason once.

    What no work could run there, such as free threads with the GIL, is not repeated in the overview.
    """
    about: dict[tuple[str, str], list[Cell]] = {}
    for table in tables:
        skipped = [(result.cell, result.absence.reason) for row in table.rows for result in row.results
                   if result.absence is not None and result.absence.skip == SkipKind.WORK_CANNOT]
        without_baseline = {cell.build for cell, _ in skipped if cell.runner == table.baseline}   # the advice says why
        for cell, reason in skipped:
            if cell.build not in without_baseline:
                about.setdefault((title_of(table), reason), []).append(cell)
    for (title, reason), cells in about.items():
        models, builds = ([*dict.fromkeys(names)] for names in (
            (cell.runner for cell in cells), (cell.build for cell in cells)))
        yield f"{list_text(models)} of {title} on {list_text(builds)}: {reason}"


def gains_table(tables: Sequence[WorkloadTable], title: str = "Speed-up") -> Table:
    """Return the speed-up of each model for each workload and build; the title says over which baseline."""
    usual = max(workers for table in tables for workers in measured_workers(table))
    runners = dict.fromkeys(row.runner for table in tables for row in table.rows)
    columns = [(table, i) for table in tables for i in range(len(table.builds))]
    notes = Footnotes()
    rows = [(runner, [_entry(table, i, runner, usual, notes) for table, i in columns]) for runner in runners]
    # Models with a number first.
    rows.sort(key=lambda row: not any(isinstance(entry.value, GainValue) for entry in row[1]))
    noun = counts_text(tables[0].baseline, [usual])
    return Table(
        title=f"{title} over {tables[0].baseline} of the same build, {noun}",
        columns=(Column(title="model", key=True, align="left"), *(
            Column(title=table.builds[i], group=title_of(table), align="left", source=table.builds[i])
            for table, i in columns)),
        rows=tuple(
            (Entry(runner), *entries) for runner, entries in rows
            if runner != tables[0].baseline and any(entry.value != "-" for entry in entries)
        ),
        footnotes=notes.texts(),
    )


def measured_workers(table: WorkloadTable) -> list[int]:
    """Return the worker counts of all cells with a ratio to show, and of those that were starved."""
    starved = (result for row in table.rows for result in row.results
               if result.absence is not None and result.absence.word == "starved")
    return [*(option.cell.workers for advice in table.advice for option in advice.shown),
            *(result.cell.workers for result in starved)]


def title_of(table: WorkloadTable) -> str:
    """Return a workload with the length of its tasks, if that was varied."""
    length = "" if table.task_seconds is None else f", {format_seconds(table.task_seconds)}"
    return table.workload + length


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


def _legend(table: Table, tables: Sequence[WorkloadTable]) -> Iterator[str]:
    """Yield the meaning of each sign that occurs in the table, and what its error probabilities cover."""
    gains = _gains(table)
    yield f"{signs_text(table, tables)}."
    if gains:
        stars = any(gain.best for gain in gains)
        lacking = "; 5 % for each set of * that it lacks the fastest measured model" if stars else ""
        sessions = max(gain.comparison.sessions for gain in gains)
        which = "this session" if sessions == 1 else f"these {sessions} sessions"
        about = f" about {which}" if sessions < FEWEST else ""
        yield (f"Error probability, if the noise model holds: at most 5 % that any verdict{about} is false (they use "
               f"wider intervals, printed for undecided ones){lacking}.")


def _gains(table: Table) -> list[GainValue]:
    return [entry.value for row in table.rows for entry in row if isinstance(entry.value, GainValue)]


def control_text(tables: Iterable[WorkloadTable]) -> str:
    """Return which model was measured with a GIL that was turned on for comparison; "" if none was."""
    cells = [option.cell for table in tables for advice in table.advice for option in advice.shown if option.control]
    if not cells:
        return ""
    runners, builds = ([*dict.fromkeys(names)] for names in (
        (cell.runner for cell in cells), (cell.build for cell in cells)))
    return f"{list_text(runners)} on {list_text(builds)}: with the GIL turned on"


def signs_text(table: Table, tables: Sequence[WorkloadTable]) -> str:
    """Return the meaning of each sign that occurs in a table of speed-ups of these workloads."""
    gains = _gains(table)
    words = {entry.value for row in table.rows for entry in row if isinstance(entry.value, str)}
    forms = {gain_form(gain.comparison) for gain in gains}
    parts = [
        ("*: the fastest or not told apart from it", any(gain.best for gain in gains)),
        (_none_text(gains), "none" in forms),
        ("?: may gain or not", "range" in forms),
        (f"±: 95 % interval of a speed-up, where wider than {SHOWN_SPREAD * 100:g} %",
         "spread" in forms and not all(gain.bare for gain in gains)),
        ("N: workers", any(gain.workers is not None for gain in gains)),
        ("starved: other programs used the cores that it needed", "starved" in words),
        (control := control_text(tables), bool(control)),
    ]
    return "; ".join(text for text, there in parts if there)


def _none_text(gains: Iterable[GainValue]) -> str:
    """Return the meaning of "none", and that the tables of the workloads may show a loss for such a cell."""
    open_below = any(gain_form(gain.comparison) == "none" and gain.comparison.verdict() != SpeedVerdict.SAME
                     for gain in gains)
    loss = ", a loss may not be" if open_below else ""
    return f"none: a gain above {MARGIN * 100:g} % is excluded{loss}"


def closing_lines(tables: Sequence[WorkloadTable], run: Run) -> Iterator[str]:
    """Yield how free-threaded builds compare with those with a GIL, and what to do for clearer answers."""
    steady = [table for table in tables if table.phase is Phase.STEADY]
    lines, undecided = build_lines(steady, run, intervals=True)
    yield from lines
    yield from ceiling_lines(steady, run)
    yield from next_steps(tables, run, undecided)


def build_lines(
    tables: Sequence[WorkloadTable], run: Run, *, intervals: bool,
) -> tuple[list[str], list[Comparison]]:
    """Return how free-threaded builds compare with those with a GIL, in sentences, and the undecided comparisons.

    Args:
        tables: Those of steady work.
        run: The run.
        intervals: Whether each difference has its interval.
    """
    costs = _costs_of_builds(tables, {build.label for build in run.builds if build.free_threaded})
    fastest = _fastest_of_builds(tables)
    lines = [f"CPU time of {tables[0].baseline} on {build}, against {gil_build}: "
             f"{_cost_text(found, intervals=intervals)}" for (build, gil_build), found in costs.items()]
    lines += [f"fastest model of {build} against that of {gil_build}: {_gain_text(found, intervals=intervals)}"
              for (build, gil_build), found in fastest.items()]
    return lines, [each for found in (*costs.values(), *fastest.values()) for each in found.values()
                   if each.verdict() == SpeedVerdict.CANNOT_TELL]


def _costs_of_builds(
    tables: Iterable[WorkloadTable], free: Container[str],
) -> dict[tuple[str, str], dict[str, Comparison]]:
    """Compare one thread without and with the GIL, by builds and workload, at the longest tasks."""
    pairs: dict[tuple[str, str], dict[str, Comparison]] = {}
    for table in sorted(tables, key=lambda each: each.task_seconds or 0.0):
        for each in table.contrasts:
            gil, cell = each.baseline, each.sample
            alone = cell.workers == 1 and cell.runner == table.baseline
            if each.comparison is not None and alone and cell.build in free and gil.build not in free:
                pairs.setdefault((cell.build, gil.build), {})[table.workload] = each.comparison
    return pairs


def _fastest_of_builds(tables: Iterable[WorkloadTable]) -> dict[tuple[str, str], dict[str, Comparison]]:
    """Compare the fastest models without and with the GIL, by builds and by workload with its length of tasks."""
    pairs: dict[tuple[str, str], dict[str, Comparison]] = {}
    for table in tables:
        for each in table.fastest_of_builds:
            pairs.setdefault((each.free.build, each.gil.build), {})[title_of(table)] = each.comparison
    return pairs


def ceiling_lines(tables: Iterable[WorkloadTable], run: Run) -> Iterator[str]:
    """Name the command that finds the object in the way of free threads that are far below processes.

    Only for a function of the user's: gilscope's own workloads are as they are on purpose.
    """
    user = (run.options.get("selection") or {}).get("user")
    gaps = [gap for table in tables for advice in table.advice if (gap := advice.below_ceiling) is not None]
    if not gaps or not user:
        return
    shares = [f"{gap.comparison.ratio:.2f} on {gap.cell.build}" for gap in gaps]
    given = [word for option in ("payloads", "payload") if user.get(option) is not None
             for word in (f"--{option}", user[option])]
    words = ["gilscope", "scale", user["function"], *given, "--builds", ",".join(gap.cell.build for gap in gaps)]
    yield (f"{gaps[0].cell.workers} free threads reach {list_text(shares)} of the throughput of as many processes, "
           f"which share no objects: `{shlex.join(words)}` finds out which object or lock is in the way.")


def _cost_text(found: Mapping[str, Comparison], *, intervals: bool) -> str:
    """Return "more by 16 % for primes, 15 % for http_fetch; within 3 % for a; undecided for ..."."""
    return _by_verdict(found, {SpeedVerdict.SLOWER: "more by ", SpeedVerdict.FASTER: "less by "},
                       partial(price_text, interval=intervals), limits_text)


def _gain_text(found: Mapping[str, Comparison], *, intervals: bool) -> str:
    """Return "1.80x for primes; within 3 % for sha256_64k; undecided for http_fetch", or "undecided for all"."""
    heads = dict.fromkeys((SpeedVerdict.FASTER, SpeedVerdict.SLOWER), "")
    if intervals:
        return _by_verdict(found, heads, interval_text, lambda each: range_of(*each.between))
    if len(found) > 1 and all(each.verdict() is SpeedVerdict.CANNOT_TELL for each in found.values()):
        return "undecided for all"
    return _by_verdict(found, heads, lambda each: f"{ratio_number(each.ratio)}x", lambda _: "")


def _by_verdict(
    found: Mapping[str, Comparison], differing: Mapping[SpeedVerdict, str],
    size: Callable[[Comparison], str], limits: Callable[[Comparison], str],
) -> str:
    """Return comparisons by their verdict: those that differ with their size, open ones with what is possible."""
    heads = {**differing, SpeedVerdict.SAME: f"within {MARGIN * 100:g} % for ",
             SpeedVerdict.CANNOT_TELL: "undecided for "}
    texts: dict[SpeedVerdict, list[str]] = {}
    for name, comparison in sorted(found.items(), key=lambda item: item[1].ratio):
        verdict = comparison.verdict()
        words = name + beside(comparison)
        if verdict in differing:
            words = f"{size(comparison)} for {words}"
        elif verdict is SpeedVerdict.CANNOT_TELL and (possible := limits(comparison)):
            words = f"{words} ({possible})"
        texts.setdefault(verdict, []).append(words)
    return "; ".join(head + ", ".join(texts[verdict]) for verdict, head in heads.items() if verdict in texts)
