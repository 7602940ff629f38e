"""An experiment's stored run as a document, as figures, and as JSON values (docs/json.md)."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.round_texts import mark_lines
from gilscope.toolkit.model import SkipKind
from gilscope.toolkit.report.as_json import finite, floor_values, head, measured, summary
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.document import Banner, Document, Heading, Lines, Picture
from gilscope.toolkit.report.figures.drawing import draw_figures
from gilscope.toolkit.report.figures.figure import shows_something
from gilscope.toolkit.report.provenance import build_sections
from gilscope.toolkit.report.run_document import about
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table_sentences import noise_line
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.experiments.base import Experiment, Publication
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

SMOKE = "--smoke: all sizes are tiny and run once; the numbers show only that the experiment works here"
MADE = {EffortLevel.FULL: "in full", EffortLevel.QUICK: "--quick",
        EffortLevel.SMOKE: "--smoke: the numbers mean nothing"}
SCOPE = "All intervals are about this session: at another time, or beside other neighbours, ratios may differ by more."
EXPERIMENTS = "gilscope/experiments/2"


def experiment_of(run: Run) -> Experiment:
    """Return the experiment that `run` measured.

    Raises:
        ToolkitError: it is no run of an experiment, or its options were edited.
    """
    name = run.options.get("experiment")
    if not isinstance(name, str):
        raise ToolkitError(f"{run.label} is no experiment's run: `gilscope report {run.label}` shows it")
    if (effort := run.options.get("effort", EffortLevel.FULL)) not in tuple(EffortLevel):
        raise BadFileError(f"run.json of {run.label} says effort {effort!r}, not one of {', '.join(EffortLevel)}")
    return catalog.find(name)


def document(experiment: Experiment, run: Run, folder: Path | None, pictures: Sequence[Picture] = ()) -> Document:
    """Return the report of a run of `experiment`.

    Args:
        experiment: The experiment.
        run: Its run.
        folder: The folder with its values and files, None if it is not stored.
        pictures: Its figures, as `draw` returns them.
    """
    results = experiment.results(run, folder)
    sections: list[Section] = [Heading(experiment.title, 1), about(run), *build_sections(run.builds)]
    sections += map(Banner, cautions(run))
    if _is_smoke(run):
        sections.append(Banner(SMOKE))
    sections.append(Lines("Then", (experiment.claim, *map(_source_line, experiment.sources))))
    shown = experiment.sections(results)
    sections += shown
    if findings := (*_findings(experiment, results), *_cut_lines(run, folder)):
        sections.append(Lines("Now", findings))
    marks = mark_lines(shown, (results.value(cell) for cell in results.cells()))
    sections.append(Lines("", (*marks, noise_line(results.floors()), SCOPE)))
    return Document((*sections, *pictures))


def _is_smoke(run: Run) -> bool:
    return run.options.get("effort") == EffortLevel.SMOKE


def _findings(experiment: Experiment, results: Results) -> tuple[str, ...]:
    """Return the findings; a smoke run has none, since its numbers mean nothing."""
    return () if _is_smoke(results.run) else experiment.findings(results)


def _cut_lines(run: Run, folder: Path | None) -> Iterator[str]:
    """Yield what to do if the budget ended before everything had been measured once."""
    if not any(skip.kind == SkipKind.OUT_OF_BUDGET for skip in run.skips):
        return
    goes_on = ""
    if folder is not None and run.machine.hostname:   # published copies have no host name and cannot go on
        goes_on = f": `gilscope experiment run --resume {folder.parent.name} --budget TIME` measures the rest"
    yield f"The budget ended before everything had been measured once, so findings may be missing{goes_on}."


def _source_line(source: Publication) -> str:
    where = f", {source.url}" if source.url else ""
    return f"{source.cited()}{where}: {source.headline}"


def figures_of(experiment: Experiment, run: Run, folder: Path | None) -> list[Figure]:
    """Return the figures of a run stored in `folder`, each saying where and when it was measured.

    Figures without a single measured value are left out: the tables say why there is none.
    """
    return [replace(figure, made=made_on(run)) for figure in experiment.figures(experiment.results(run, folder))
            if shows_something(figure)]


def pictures_of(experiment: Experiment, run: Run, folder: Path) -> list[Picture]:
    """Return the figures that `folder` holds drawn, and those that can be drawn from what it holds.

    The figures of a published run may be all that is left of files that are not published, such as traces.
    """
    files = [(figure, folder / f"{figure.name}.svg") for figure in experiment.figures(experiment.results(run, folder))]
    return [Picture(figure.title, str(file)) for figure, file in files if file.is_file() or shows_something(figure)]


def made_on(run: Run) -> str:
    """Return when, where and with how much effort `run` was measured, in a line."""
    machine, made = run.machine, MADE[EffortLevel(str(run.options.get("effort", EffortLevel.FULL)))]
    return (f"Measured {run.started[:10]} on {machine.cpu_model}, {machine.cores} cores, "
            f"{machine.system.partition('-')[0]}; {made}, {counted(run.rounds_done, 'round')}")


def draw(experiment: Experiment, run: Run, folder: Path, python: Path, into: Path | None = None) -> list[Picture]:
    """Draw the figures of a run as SVG and PNG, and return the SVG ones.

    Args:
        experiment: The experiment.
        run: Its run.
        folder: The folder with its values and files.
        python: The Python with matplotlib that `report.drawing` found.
        into: The folder to draw into, None for `folder`.

    Raises:
        CannotDrawError: The process that draws failed.
    """
    figures = figures_of(experiment, run, folder)
    drawn = draw_figures(python, figures, into or folder) if figures else []
    return [Picture(figure.title, str(path)) for figure, path in zip(figures, drawn, strict=True)]


def beside(pictures: Sequence[Picture]) -> list[Picture]:
    """Return pictures with paths relative to a file in their own folder."""
    return [replace(picture, path=Path(picture.path).name) for picture in pictures]


def experiments_values(runs: Sequence[tuple[Run, Path | None]]) -> dict[str, Any]:
    """Return the reports of experiments as JSON values, each a run with the folder that it is stored in."""
    return {"schema": EXPERIMENTS, "gilscope": __version__, "experiments": [_values(*each) for each in runs]}


def _values(run: Run, folder: Path | None) -> dict[str, Any]:
    experiment, index = experiment_of(run), Index(run)
    results = experiment.results(run, folder)
    fields, judged = head("", run), experiment.judged(results)
    del fields["schema"], fields["gilscope"]
    values: dict[str, Any] = finite({
        **fields, "name": experiment.name, "title": experiment.title, "claim": experiment.claim,
        "effort": run.options.get("effort"), "scope": scope_text(run),
        "sources": [dataclasses.asdict(source) for source in experiment.sources],
        "cells": [_cell(cell, results, index) | judged.get(cell, {}) for cell in results.cells()],
        "floors": list(floor_values(results.floors(), {})),
        "findings": list(_findings(experiment, results)),
    })
    return values


def _cell(cell: Cell, results: Results, index: Index) -> dict[str, Any]:
    names = dict.fromkeys(name for each in results.observations(cell) for name, _ in each.metrics)
    return {
        "model": cell.runner, "workers": cell.workers, "build": cell.build, "parameters": dict(cell.parameters),
        **measured(index, cell), "notes": list(results.notes(cell)),
        "metrics": {name: summary(results.metric(cell, name)) for name in names if results.metrics(cell, name)},
        "texts": {name: sorted(set(texts)) for name in names if (texts := results.texts(cell, name))},
    }
