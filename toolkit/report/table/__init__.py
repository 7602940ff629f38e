"""Runs into rows, columns and baselines.  Everything here is derived, and can be made again from a stored run."""

from gilscope.toolkit.report.table.cell_results import CellResult, Floors, TableRow
from gilscope.toolkit.report.table.contrast import (
    Choice,
    Contrast,
    compare_builds,
    compare_models,
    compare_runs,
)
from gilscope.toolkit.report.table.judgement import Gate, gate, missing, rounds_to_tell, unjudged
from gilscope.toolkit.report.table.matrix import WorkloadTable, build_tables
from gilscope.toolkit.report.table.observations import Absence, CellSeries, MetricValue
from gilscope.toolkit.report.table.recommendation import Advice, FastestOfBuilds, OpenCell, Option

__all__ = [
    "Absence",
    "Advice",
    "CellResult",
    "CellSeries",
    "Choice",
    "Contrast",
    "FastestOfBuilds",
    "Floors",
    "Gate",
    "MetricValue",
    "OpenCell",
    "Option",
    "TableRow",
    "WorkloadTable",
    "build_tables",
    "compare_builds",
    "compare_models",
    "compare_runs",
    "gate",
    "missing",
    "rounds_to_tell",
    "unjudged",
]
