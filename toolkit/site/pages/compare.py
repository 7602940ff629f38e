"""The data of the comparing page for each run: pairs of its builds or models, and its side of pairs of runs.

Pairs of one run are compared here, by what `gilscope compare` does, and the page shows its report.  Pairs of runs are
too many for that: of each cell the page gets where it lies by its run (see `stats.unpaired`), and compare.js does the
same with two of them; tests hold its words against those of `gilscope compare`.
"""

from __future__ import annotations

from itertools import permutations
from math import isfinite
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.pairing import compare_builds as unfair
from gilscope.toolkit.model import Note, Phase
from gilscope.toolkit.report.cautions import cautions_beside_pairs, stopping_text
from gilscope.toolkit.report.comparison import TWO_RUNS, comparison_document, workload_text
from gilscope.toolkit.report.document import Duration, with_scope
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table import compare_builds, compare_models
from gilscope.toolkit.report.table.contrast import build_identity, pick_clock
from gilscope.toolkit.report.table.footnotes_of_cells import note_on_side, notes_on_processes
from gilscope.toolkit.report.table.observations import Absence, group_of
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import value_text
from gilscope.toolkit.site.how_to_repeat import command
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.stats import common_shift
from gilscope.toolkit.stats.distributions import NORMAL
from gilscope.toolkit.stats.interim_looks import final_confidence
from gilscope.toolkit.stats.sample import CONFIDENCE, needed, summarize
from gilscope.toolkit.stats.verdict import MARGIN, MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import Contrast
    from gilscope.toolkit.report.table.ratios import Ratios
    from gilscope.toolkit.site.sources import LoadedRun
    from gilscope.toolkit.stats.unpaired import ErrorPart

# What compare.js goes by.
CONSTANTS = {
    "confidence": CONFIDENCE, "margin": MARGIN, "leastRounds": MIN_ROUNDS,
    "zConfidence": NORMAL.inv_cdf((1 + CONFIDENCE) / 2),
    "sureRounds": needed(CONFIDENCE), "enough": common_shift.ENOUGH, "typicalShift": common_shift.TYPICAL_SHIFT,
    "typicalScatter": common_shift.TYPICAL_SCATTER, "proportional": common_shift.PROPORTIONAL,
    "growth": common_shift.GROWTH, "prior": common_shift.PRIOR, "medianVariance": common_shift.MEDIAN,
    "normalMad": common_shift.NORMAL_MAD, "scope": TWO_RUNS,
}


def compare_run(loaded: LoadedRun, ratios: Ratios, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the page's data of one run.

    Args:
        loaded: The run.
        ratios: Those of it with its values.
        files: Where the page finds the pyperf file of each build.
    """
    index = ratios.index
    run, cautions = index.run, cautions_beside_pairs(index.run)
    cells = index.cells()
    models = list(dict.fromkeys(cell.runner for cell in cells))
    selection = run.options.get("selection") or {}
    user = selection.get("user") or {}
    return shown({
        **source_of(loaded, files), "host": loaded.host, "machine": [run.machine.cpu_model, run.machine.cores],
        "builds": [[build.label, build.version, build.base_executable, build_identity(build)] for build in run.builds],
        "work": {"size": selection.get("size"), "payload": user.get("payload"), "payloads": user.get("payloads")},
        "together": final_confidence(run.looks), "cells": [_cell(cell, ratios) for cell in cells],
        "cautions": cautions, "stopping": stopping_text(run),
        "ofBuilds": {f"{a},{b}": _builds(run, ratios, a, b, cautions)
                     for a, b in permutations([build.label for build in run.builds], 2)},
        "ofModels": {f"{a},{b}": _models(run, ratios, a, b, cautions) for a, b in permutations(models, 2)},
    })


def source_of(loaded: LoadedRun, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the source of the numbers of a run: its files, and the command that repeats it."""
    return {"label": loaded.run.label, "page": loaded.page, "files": dict(files), "command": command(loaded.run)}


def _builds(run: Run, ratios: Ratios, first: str, second: str, cautions: Sequence[str]) -> list[dict[str, Any]]:
    builds = {build.label: build for build in run.builds}
    contrasts = compare_builds(run, first, second, noise=ratios)
    own = [note.text for note in unfair(builds[first], builds[second])]
    return _report(run, contrasts, first, second, [*own, *cautions])


def _models(run: Run, ratios: Ratios, first: str, second: str, cautions: Sequence[str]) -> list[dict[str, Any]]:
    return _report(run, compare_models(run, first, second, noise=ratios), first, second, cautions)


def _report(
    run: Run, contrasts: Sequence[Contrast], first: str, second: str, cautions: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the report of `gilscope compare`, in as few words as say it."""
    document = comparison_document(
        f"{run.label}: {second} against {first}", contrasts, baseline=first, sample=second,
        notes=[Note(text=text) for text in cautions], remarks=filter(None, [stopping_text(run)]))
    return [_short(section) for section in document_values(with_scope(document, scope_text(run)))]


def _short(section: dict[str, Any]) -> dict[str, Any]:
    if section["kind"] != "table":
        return section
    return {"kind": "table", "title": section["title"], "footnotes": section["footnotes"],
            "columns": [[column["title"], column["right"]] for column in section["columns"]],
            "rows": [[_short_entry(entry) for entry in row] for row in section["rows"]]}


def _short_entry(entry: dict[str, Any]) -> list[Any]:
    """Return a text, the number to sort by and the marks of footnotes, as far as there are any."""
    if entry["marks"]:
        return [entry["text"], entry["sort"], entry["marks"]]
    return [entry["text"]] if entry["sort"] is None else [entry["text"], entry["sort"]]


def _cell(cell: Cell, ratios: Ratios) -> dict[str, Any]:
    """Return a run's side of one cell, by the clock that `compare` chooses for it."""
    index, clock, group = ratios.index, pick_clock("auto", cell.workers), group_of(cell)
    series = index.look_up(cell)
    values: dict[str, Any] = {
        "key": f"{cell.name}/{cell.build}", "title": title_text(cell), "name": workload_text(cell),
        "workload": cell.workload, "model": cell.runner, "workers": cell.workers, "build": cell.build,
        "clock": clock, "tasks": index.tasks(cell) if cell.phase is Phase.STEADY else None,
        "units": _units(cell, ratios),
    }
    if isinstance(series, Absence):
        return values | {"absent": f"{series.word}: {series.reason}"}
    seconds = list(series.by(clock).values())
    if not seconds:
        return values | {"absent": None}
    check, place, time = ratios.by(clock).check, ratios.level(cell, clock), summarize(seconds)
    lacking = note_on_side(ratios, cell, clock)
    return values | {
        "level": [place.center, place.rounds, *_part(place.own), *_part(place.usual), *_part(place.machine),
                  place.kept],
        "off": ratios.error(group, clock, cell.workers), "check": [check.arms, check.widening],
        "time": [value_text(Duration(time.center, time.spread if time.count > 1 else None)), time.center],
        "processes": time.count, "notes": [note.text for note in notes_on_processes(ratios, cell, clock)],
        "lacking": None if lacking is None else lacking.text,
    }


def _part(part: ErrorPart) -> tuple[float | None, float | None]:
    """Return a part's square and freedom; JSON has no infinity."""
    return (part.square if isfinite(part.square) else None, part.freedom if isfinite(part.freedom) else None)


def _units(cell: Cell, ratios: Ratios) -> int | None:
    listed = ratios.index.run.options.get("units") or ()
    return next((units for name, seconds, units, _ in listed if (name, seconds) == (cell.workload, cell.task_seconds)),
                None)


def compare_file(loaded: LoadedRun) -> str:
    """Return the script that knows a run."""
    return f"data/{loaded.id}/compare.js"


def compare_values(
    known: Sequence[LoadedRun], default: Sequence[dict[str, Any]], source: Mapping[str, Any] | None = None,
    chosen: str = "",
) -> dict[str, Any]:
    """Return the values of `compare.html` but those around it.

    Args:
        known: All runs, the oldest first.
        default: The report that is there before anybody has chosen: sections.
        source: Where its numbers are from; see `source_of`.
        chosen: The id of the run that it is of, which the form shows as chosen.
    """
    runs = [each for each in known if not each.is_experiment]
    files = source["files"] if source else {}
    # The first two builds; of hosts on one machine no single file has the numbers.
    sides = next(([files.get(build.label, "") for build in each.run.builds[:2]] for each in runs if each.id == chosen),
                 ["", ""])
    hosts: dict[str, str] = {}
    for each in runs:
        hosts[each.host] = each.id   # the newest of each
    return shown({
        "runs": [{"id": each.id, "label": each.run.label, "host": each.host, "day": each.run.started[:10],
                  "file": compare_file(each), "builds": [build.label for build in each.run.builds],
                  "models": list(dict.fromkeys(cell.runner for cell in each.run.cells))} for each in reversed(runs)],
        "hosts": [{"name": name, "id": id_} for name, id_ in hosts.items()], "constants": CONSTANTS,
        "default": list(default), "source": source, "chosen": chosen, "sides": sides,
    })
