"""Runs into rows, columns and baselines.  Everything here is derived, and can be made again from a stored run."""

from toolkit.table.cells import Absence, Memory, Series
from toolkit.table.contrast import Choice, Contrast, compare_builds, compare_models, compare_runs
from toolkit.table.floors import Floors
from toolkit.table.matrix import CellResult, Row, ScalingFit, WorkloadTable, build_tables

__all__ = [
    "Absence", "CellResult", "Choice", "Contrast", "Floors", "Memory", "Row", "ScalingFit", "Series", "WorkloadTable",
    "build_tables", "compare_builds", "compare_models", "compare_runs",
]
