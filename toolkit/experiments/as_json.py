"""Experiments as values for programs; docs/json.md explains them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.report import experiment_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.report.as_json import finite, floor_values, head, measured, summary
from gilscope.toolkit.report.table.observations import Index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Cell, Run

EXPERIMENTS = "gilscope/experiments/1"


def experiments_values(runs: Sequence[tuple[Run, Path | None]]) -> dict[str, Any]:
    """Return the reports of experiments, each a run with the folder that it is stored in."""
    return {"schema": EXPERIMENTS, "gilscope": __version__, "experiments": [_values(*each) for each in runs]}


def _values(run: Run, folder: Path | None) -> dict[str, Any]:
    experiment, results, index = experiment_of(run), Results(run, folder), Index(run)
    effort = run.options.get("effort")
    fields = head("", run)
    del fields["schema"], fields["gilscope"]
    values: dict[str, Any] = finite({
        **fields, "name": experiment.name, "title": experiment.title, "claim": experiment.claim, "effort": effort,
        "sources": [dataclasses.asdict(source) for source in experiment.sources],
        "cells": [_cell(cell, results, index) for cell in results.cells()],
        "floors": list(floor_values(results.floors(), {})),
        # Of --smoke no number means anything.
        "findings": [] if effort == Effort.SMOKE else list(experiment.findings(results)),
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
