"""Remove from stacks the thirty frames through which pytest calls a test."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.race.report.model import Access, Frame, Race, RaceReport

RUNNERS = {"_pytest", "pluggy", "pytest_run_parallel"}    # packages that call tests


def without_pytest(report: RaceReport) -> RaceReport:
    """Return the report with stacks that end where pytest calls the test."""
    return replace(report, races=tuple(map(_race, report.races)), notes=tuple(map(_race, report.notes)))


def _race(race: Race) -> Race:
    return replace(race, first=_access(race.first), second=_access(race.second))


def _access(access: Access) -> Access:
    return replace(access, stack=tuple(takewhile(_is_the_programs, access.stack)),
                   started=tuple(takewhile(_is_the_programs, access.started)))


def _is_the_programs(frame: Frame) -> bool:
    return not RUNNERS & set(frame.path.split(os.sep))
