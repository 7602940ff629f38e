"""Runs and comparisons as JSON values.  `../schemas/` defines them, docs/json.md explains them.

They contain everything that the tables show, with all digits, in seconds and bytes; a missing number is null.  Adding a
field keeps the version of a schema; removing one or changing its meaning makes a new version.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.metrics import MEMORY
from gilscope.toolkit.report.cautions import ratio_cautions
from gilscope.toolkit.report.closing_lines import closing_lines
from gilscope.toolkit.report.provenance import process_values, warnings
from gilscope.toolkit.report.sessions import scope_text, session_rounds
from gilscope.toolkit.report.table.judgement import rounds_to_tell, unjudged
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Absence, Index
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Build, Cell, Machine, Note, Run
    from gilscope.toolkit.report.table.cell_results import CellResult, NoiseFloor
    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.report.table.judgement import Gate
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import Clock, MetricValue
    from gilscope.toolkit.report.table.recommendation import Advice, Option
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison
    from gilscope.toolkit.store import RunListing

RUN = "gilscope/run/3"
COMPARE = "gilscope/compare/4"
RUNS = "gilscope/runs/1"
_BUILD = ("label", "version", "executable", "free_threaded", "debug", "jit", "tail_call", "compiler", "opt_level",
          "pgo", "lto", "allocator")
_MACHINE = ("cpu_model", "cores", "memory_bytes", "system", "governor", "turbo", "smt", "hypervisor", "microcode")


def run_values(run: Run) -> dict[str, Any]:
    """Return the report of a run."""
    tables, index = build_tables(run), Index(run)
    values: dict[str, Any] = finite({
        **head(RUN, run), "notes": [*ratio_cautions(run)],
        "looks": run.looks, "margin": MARGIN, "scope": scope_text(run) or None,
        "sessions": [{"started": session.started, "first_round": session.first_round, "rounds": rounds}
                     for session, rounds in zip(run.sessions, session_rounds(run), strict=False)],
        "cells": [
            _result(result, index) for table in tables for row in table.rows for result in row.results
        ],
        "floors": [floor for table in tables for floor in floor_values(table.floors, _group(table))],
        "build_ratios": [
            {**cell_values(each.sample), "against": each.baseline.build, **_contrast(each)}
            for table in tables for each in table.contrasts
        ],
        "best": [{**_group(table), **_best(each)} for table in tables for each in table.advice],
        "in_short": [*closing_lines(tables, run, full=True)],
    })
    return values


def compare_values(  # noqa: PLR0913 - the parts of a comparison
    contrasts: Sequence[Contrast], *, baseline: str, sample: str, notes: Sequence[Note], margin: float = MARGIN,
    gate: Gate | None = None, sentences: Sequence[str] = (), scope: str = "",
) -> dict[str, Any]:
    """Return the report of a comparison of cells; the arguments are those of `comparison_document`."""
    values: dict[str, Any] = finite({
        "schema": COMPARE, "gilscope": __version__, "baseline": baseline, "sample": sample, "margin": margin,
        "scope": scope or None,
        "notes": [note.text for note in notes],
        "cells": [
            {
                "baseline": cell_values(each.baseline), "sample": cell_values(each.sample), **_contrast(each, margin),
                "baseline_time": summary(each.baseline_time), "sample_time": summary(each.sample_time),
                "unjudged": unjudged(each.comparison, margin) if each.comparison else None,
                "baseline_notes": [note.text for note in each.baseline_notes],
                "sample_notes": [note.text for note in each.sample_notes],
            }
            for each in contrasts
        ],
        "gate": None if gate is None else {
            "limit": gate.limit, "judged": gate.judged, "past": len(gate.past), "within": len(gate.within),
            "untold": len(gate.undecided), "one_sided": len(gate.one_sided), "empty": len(gate.empty),
        },
        "in_short": list(sentences),
    })
    return values


def listed_values(found: Sequence[RunListing]) -> dict[str, Any]:
    """Return the list of runs."""
    return {"schema": RUNS, "gilscope": __version__, "runs": [_listed(each) for each in found]}


def _listed(listed: RunListing) -> dict[str, Any]:
    run = listed.run
    if run is None:
        return {"label": listed.label, "problem": listed.problem}
    return {
        "label": listed.label, "problem": None, "started": run.started, "builds": [each.label for each in run.builds],
        "workloads": list(dict.fromkeys(cell.workload for cell in run.cells)),
        "experiment": run.options.get("experiment"), **_progress(run),
        "failed": len({failure.cell for failure in run.failures}),
        "hosts": None if listed.fleet is None else dict(Counter(str(host.state) for host in listed.fleet.hosts)),
    }


def head(schema: str, run: Run) -> dict[str, Any]:
    """Return the fields that begin every report of a run."""
    return {"schema": schema, "gilscope": __version__, **made(run)}


def made(run: Run) -> dict[str, Any]:
    """Return the machine, builds, processes, seed and rounds of a run."""
    return {
        "label": run.label, "started": run.started, **_progress(run), "seed": run.seed, "baseline": run.baseline,
        "machine": machine_values(run.machine),
        "builds": [_build(build) for build in run.builds], "processes": process_values(run),
        "notes": [*(note.text for note in run.notes), *warnings(run)],
    }


def machine_values(machine: Machine) -> dict[str, Any]:
    """Return a machine without its name, and without what only gilscope itself uses."""
    return {name: getattr(machine, name) for name in _MACHINE}


def _progress(run: Run) -> dict[str, Any]:
    return {"rounds_done": run.rounds_done, "rounds_planned": run.rounds_planned, "ended_by": run.stopped}


def _build(build: Build) -> dict[str, Any]:
    return {**{name: getattr(build, name) for name in _BUILD}, "revision": build.revision or None}


def _group(table: WorkloadTable) -> dict[str, Any]:
    return {"workload": table.workload, "phase": str(table.phase), "task_seconds": table.task_seconds}


def cell_values(cell: Cell) -> dict[str, Any]:
    """Return one point of the matrix."""
    return {
        "workload": cell.workload, "phase": str(cell.phase), "task_seconds": cell.task_seconds, "model": cell.runner,
        "workers": cell.workers, "build": cell.build,
    }


def _result(result: CellResult, index: Index) -> dict[str, Any]:
    return {
        **cell_values(result.cell), **measured(index, result.cell), "notes": [note.text for note in result.notes],
        "speedup": comparison(result.speedup), "efficiency": result.efficiency,
        # A ratio > 1 is faster; of CPU time people ask how much more it takes.
        "cpu_inflation": result.cpu_inflation,
        "memory": _memory(result.memory), **_metrics(result), "slowest_process": result.slowest,
    }


def measured(index: Index, cell: Cell) -> dict[str, Any]:
    """Return the status of a cell and its seconds by both clocks."""
    series = index.look_up(cell)
    if isinstance(series, Absence):
        return {"status": series.word, "reason": series.reason, "time": None, "cpu_time": None}
    wall, cpu = (summarize(list(each.values())) if each else None for each in (series.wall, series.cpu))
    return {"status": "measured", "reason": None, "time": summary(wall), "cpu_time": summary(cpu)}


def _best(advice: Advice) -> dict[str, Any]:
    """Return the models of one build that no other is significantly faster than, the preferred one first."""
    return {
        "build": advice.build, "reason": advice.missing,
        "models": [_option(each) for each in advice.options],
        "not_known": [
            {"model": each.cell.runner, "workers": each.cell.workers, "why": each.why} for each in advice.open
        ],
        "below_ceiling": None if advice.below_ceiling is None else {
            "model": advice.below_ceiling.cell.runner, "workers": advice.below_ceiling.cell.workers,
            "ceiling": advice.below_ceiling.ceiling.runner,
            "ratio": comparison(advice.below_ceiling.comparison)},
    }


def _option(option: Option) -> dict[str, Any]:
    return {"model": option.cell.runner, "workers": option.cell.workers, "speedup": comparison(option.speedup),
            "memory": _memory(option.memory)}


def _memory(memory: MetricValue | None) -> dict[str, Any] | None:
    return None if memory is None else {"bytes": memory.number, "kind": memory.metric.kind}


def _metrics(result: CellResult) -> dict[str, Any]:
    """Return the metrics of a cell that have no field of their own."""
    found = {
        column: {"value": each.number, "unit": each.metric.unit.strip(), "kind": each.metric.kind}
        for column, each in result.metrics.items() if column != MEMORY
    }
    return {"metrics": found} if found else {}


def _contrast(contrast: Contrast, margin: float = MARGIN) -> dict[str, Any]:
    return {"clock": contrast.clock, "ratio": comparison(contrast.comparison, margin), "reason": contrast.reason,
            "lacking_sessions": [note.text for note in contrast.lacking_sessions]}


def interval_values(interval: tuple[float, float]) -> dict[str, float | None]:
    """Return both ends by their names, null if it has no upper end."""
    lo, hi = interval if isfinite(interval[1]) else (None, None)
    return {"lo": lo, "hi": hi}


def summary(found: Summary | None) -> dict[str, Any] | None:
    """Return a sample's median with its interval."""
    if found is None:
        return None
    return {"median": found.center, "lo": found.lo, "hi": found.hi, "confidence": found.confidence,
            "count": found.count}


def comparison(found: Comparison | None, margin: float = MARGIN) -> dict[str, Any] | None:
    """Return a ratio with its interval and verdict, and the rounds needed if it is open."""
    if found is None:
        return None
    verdict = found.verdict(margin) if found.paired else None
    return {
        "ratio": found.ratio, **interval_values((found.lo, found.hi)),
        "floor": found.floor, "rounds": found.rounds, "sessions": found.sessions, "run_sessions": found.run_sessions,
        "verdict": verdict, "between": interval_values(found.between) if found.paired else None,
        "rounds_to_tell": rounds_to_tell(found, margin) if verdict == SpeedVerdict.CANNOT_TELL else None,
        "notes": [note.text for note in found.notes],
    }


def floor_values(floors: Mapping[Clock, NoiseFloor], group: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the noise floors of a group of cells by each clock, if they are known."""
    for clock, floor in floors.items():
        if floor.range is not None:
            smallest, largest = floor.range
            yield {**group, "clock": clock, "smallest": smallest, "largest": largest, "aa_error": floor.aa_error}


def finite(value: Any) -> Any:
    """Return `value` with null for each number that JSON does not have."""
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: finite(each) for name, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
        case _:
            return value
