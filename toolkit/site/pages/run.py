"""The page of one run: what it says, a picture and a table for each workload, its rounds, how to get it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible, visible_all
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.as_json import measured
from gilscope.toolkit.report.document import Heading, Lines, Quantity, RatioValue
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.run_document import overhead_table, run_document
from gilscope.toolkit.report.run_list import what_text
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table_sentences import noise_line, spread_line, times_scope, title_text
from gilscope.toolkit.report.wording import ratio_text, value_text
from gilscope.toolkit.site.charts.cells import END, START, dots
from gilscope.toolkit.site.charts.lines import ChartLine, lines, ratio_point
from gilscope.toolkit.site.charts.scale import ratio_scale
from gilscope.toolkit.site.how_to_repeat import build_flags, citation, command
from gilscope.toolkit.site.page_values import document_values, page_values, section_values, shown, shown_value
from gilscope.toolkit.site.style import legend, mark_of, shapes
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.units import list_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation, Run
    from gilscope.toolkit.report.document import Document, Section
    from gilscope.toolkit.report.table.cell_results import CellResult
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.stats.verdict import Comparison

ROOM = 4           # workloads that a title names
COMPUTES, WAITS = 0.75, 0.25   # of a core that the baseline keeps busy: from the one on, up to the other
LEAST_COUNTS = 2   # numbers of workers, for a picture of how a model scales


def run_page(
    run: Run, kinds: Mapping[str, str], *, tables: Sequence[WorkloadTable] | None = None,
    data: Mapping[str, str] | None = None, around: Mapping[str, Any] | None = None,
    works: Mapping[str, Mapping[str, str]] | None = None, page: str = "",
) -> dict[str, Any]:
    """Return the values of `run.html`.

    Args:
        run: With its values; `publish.without_traces` where others will see it.
        kinds: The kind of each workload that has one; others are described by their use of a core.
        tables: Those of the run, where they are made already.
        data: Where the page finds the pyperf file of each build; None: nowhere.
        around: Of the site that the page is in, and how it is made; see `page_values`.
        works: Of each workload of the catalogue, what it does in a sentence (`summary`), its `source`, and the `file`
            and `line` of that.
        page: The file of the page in the site.
    """
    found = build_tables(run) if tables is None else tuple(tables)
    index = Index(run)
    observations = {each.cell: each.observations for each in run.measurements}
    document = run_document(run, found)
    models = [row.runner for table in found for row in table.rows]
    workloads = [_workload(table, i, index, observations, kinds=kinds, data=data)
                 | {"about": dict((works or {}).get(table.workload, {}))}
                 for i, table in enumerate(found)]
    return page_values(run_title(run), _description(run, document), **(around or {})) | shown({
        "label": run.label,
        "beginning": document_values(_beginning(document), data), "workloads": workloads,
        "models": legend(models), "shapes": shapes(),
        "choices": {"build": [build.label for build in run.builds], "model": [each["model"] for each in legend(models)],
                    "kind": list(dict.fromkeys(each["sort"] for each in workloads))},
        "command": command(run), "flags": build_flags(run),
        "data": dict(data or {}), "baseline": run.baseline, "fewest": MIN_ROUNDS,
        "citation": citation(run, (around or {}).get("made", {}), page),
    })


def run_title(run: Run) -> str:
    """Return what a run measured: "primes, sha256_64k on 3.14 and 3.14t"."""
    return f"{what_text(run, ROOM)} on {list_text(build.label for build in run.builds)}"


def _description(run: Run, document: Document) -> str:
    in_short = next(
        (each.items for each in document.sections if isinstance(each, Lines) and each.is_summary), ())
    builds = ", ".join(build.label for build in run.builds)
    return visible(in_short[0] if in_short else f"{builds}, measured {run.started[:10]}", most=300)


def _beginning(document: Document) -> Document:
    """Return the sections of a report before its workloads, without its title."""
    sections: list[Section] = []
    for section in document.sections[1:]:
        if isinstance(section, Heading):
            break
        sections.append(section)
    return type(document)(tuple(sections))


def kind_of(table: WorkloadTable, kinds: Mapping[str, str]) -> str:
    """Return the kind of a table's workload: by what it does with a core, else by the catalogue.

    What a kind of the catalogue isolates, such as contention, no use of a core shows.
    """
    kind = kinds.get(table.workload, "own")
    if table.busy is None or kind not in {"own", "cpu", "io", "mixed"}:
        return kind
    return "mixed" if WAITS < table.busy < COMPUTES else "io" if table.busy <= WAITS else "cpu"


def _workload(
    table: WorkloadTable, number: int, index: Index, observations: Mapping[Cell, Sequence[Observation]],
    *, kinds: Mapping[str, str], data: Mapping[str, str] | None,
) -> dict[str, Any]:
    by_build = {build: [row.results[i] for row in table.rows] for i, build in enumerate(table.builds)}
    ratios = [each for results in by_build.values() for result in results if (seen := result.speedup) is not None
              for each in (seen.ratio, seen.lo, seen.hi)]
    floors = table.floors["wall"].range
    band = floors and floors[1]
    scale = ratio_scale(ratios, START, END)
    title, notes, overhead = title_text(table), Footnotes(), overhead_table(table)
    numbers = {cell: measured(index, cell) for results in by_build.values() for cell in (r.cell for r in results)}
    metrics = table.metric_columns
    rows = [_row(result, numbers[result.cell], observations, metrics, notes, data)
            for results in by_build.values() for result in results]
    compared = {build: [each for each in results if not each.is_baseline]
                for build, results in by_build.items()}
    return {
        "id": f"w{number}", "title": title, "sort": kind_of(table, kinds),
        "baseline": table.baseline, "noise": noise_line(table.floors), "notes": visible_all([
            *filter(None, [spread_line(table.times)]), *times_scope(table.speedups),
            *(f"{note.text}." for note in table.notes)]),
        "dots": [dots(build, results, scale, band) | {"build": build} for build, results in compared.items()],
        "rows": rows, "metrics": metrics, "footnotes": visible_all(list(notes.texts())),
        "scaling": [chart for build, results in by_build.items() if (chart := _scaling(table, build, results))],
        "rounds": [_rounds(cell, observations) for cell in numbers if observations.get(cell)],
        "overhead": section_values(visible_all(overhead), data) if overhead else None,
    }


def _row(
    result: CellResult, numbers: Mapping[str, Any], observations: Mapping[Cell, Sequence[Observation]],
    metrics: Sequence[str], notes: Footnotes, data: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Return a cell as a row of the table: each number as the terminal writes it, and what it is sorted by."""
    cell = result.cell
    row: dict[str, Any] = {
        "build": cell.build, "model": cell.runner, "workers": cell.workers, **mark_of(cell.runner),
        "rounds": len(observations.get(cell, ())), "name": cell.name,
        "file": (data or {}).get(cell.build), "time": None, "ratio": None,
        "verdict": "", "efficiency": None, "cpu": None, "inflation": None, "metrics": [None] * len(metrics)}
    if result.absence is not None:
        return row | {"verdict": result.absence.word, "marks": list(notes.marks([result.absence.reason]))}
    reasons = [note.text for note in result.notes]
    row |= {name: _time(numbers[field]) for name, field in (("time", "time"), ("cpu", "cpu_time"))}
    values = [result.metrics.get(column) for column in metrics]
    row["metrics"] = [each and shown_value(Quantity(each.number, each.metric.unit)) for each in values]
    if result.speedup is not None:
        row["ratio"] = shown_value(RatioValue(result.speedup))
        row["verdict"] = result.speedup.verdict()
    elif result.is_baseline:
        row["verdict"] = "baseline"
    if result.efficiency is not None and cell.workers > 1:
        row["efficiency"] = shown_value(Quantity(result.efficiency, "share"))
    if result.cpu_inflation is not None:
        row["inflation"] = shown_value(Quantity(result.cpu_inflation, "x"))
    return row | {"marks": list(notes.marks(reasons))}


def _time(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a summary of seconds for a table."""
    if found is None:
        return None
    middle, several = found["median"], found["count"] > 1
    spread = (found["hi"] - found["lo"]) / 2 / middle if several and middle else None
    return shown_value(Quantity(middle, "seconds", spread))


def _rounds(cell: Cell, observations: Mapping[Cell, Sequence[Observation]]) -> dict[str, Any]:
    """Return the seconds of each round of a cell, one number for each process."""
    return {"build": cell.build, "model": cell.runner, "workers": cell.workers, "values": [
        {"text": value_text(Quantity(each.wall_value, "seconds")), "starved": each.starved}
        for each in observations[cell]]}


def _scaling(table: WorkloadTable, build: str, results: Sequence[CellResult]) -> dict[str, Any] | None:
    """Return the speed-ups of models over their numbers of workers; None if no model has several."""
    found: dict[str, dict[int, Comparison]] = {}
    for result in results:
        if result.speedup is not None:
            found.setdefault(result.cell.runner, {})[result.cell.workers] = result.speedup
    drawn = [ChartLine(model=model, name=model, points=tuple(
        ratio_point(count, seen, f"N = {count}: {ratio_text(seen)}") for count, seen in sorted(by_count.items())))
        for model, by_count in found.items() if len(by_count) >= LEAST_COUNTS]
    counts = sorted({1, *(count for by_count in found.values() for count in by_count)})
    words = [(float(count), str(count)) for count in counts]
    return lines(build, drawn, words, ideal=table.phase is Phase.STEADY) | {"build": build} if drawn else None
