"""Decide which failed cells to retry in the next round, which to give up, and which a finished run has to make up for.

An accident (a killed process, a deleted folder) costs a cell one round.  A cell that always fails must not use up the
time of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import WRONG_RESULT

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from gilscope.toolkit.model import Cell, Failure, Run

HANG = "hang"
TRIES = 3        # failed rounds of a cell without any value: no accident
HANGS = 2        # of one cell, as each costs a whole time limit
MOST_HANGS = 6   # of all cells; from then on a cell that hung is not tried again


def given_up(failures: Sequence[Failure], valued: Container[Cell]) -> set[Cell]:
    """Return the cells that get no further round.

    Args:
        failures: The failures since the run was started or resumed; the cause of earlier ones may have been fixed.
        valued: The cells with a value in some round.
    """
    by_cell: dict[Cell, list[str]] = {}
    for failure in failures:
        by_cell.setdefault(failure.cell, []).append(failure.kind)
    hung = sum(failure.kind == HANG for failure in failures) >= MOST_HANGS
    return {
        cell for cell, kinds in by_cell.items()
        if WRONG_RESULT in kinds or kinds.count(HANG) >= (1 if hung else HANGS)
        or (len(kinds) >= TRIES and cell not in valued)
    }


def still_lacking(run: Run, requested: int, first: int = 0) -> tuple[int, frozenset[Cell]]:
    """Return the number of rounds that a finished run lacks because of failures, and the cells to measure in them.

    The cells are those that failed and all that they are compared with: values of different rounds are not paired.

    Args:
        run: The finished run.
        requested: The requested rounds; a run that its budget ended may have fewer.
        first: The first of these rounds; only failures from there on count.
    """
    counts = {each.cell: len(each.observations) for each in run.measurements}
    wrong = {each.cell for each in run.failures if each.kind == WRONG_RESULT}
    ended = {each.cell for each in run.skips} | {*run.answered}
    whole = min(requested, run.rounds_done - first)
    failed = {each.cell for each in run.failures if each.round >= first}
    lacking = {
        cell: whole - counts.get(cell, 0) for cell in failed - wrong - ended if counts.get(cell, 0) < whole
    }
    compared = {(cell.workload, cell.phase, cell.task_seconds) for cell in lacking}
    return max(lacking.values(), default=0), frozenset(
        cell for cell in run.cells if (cell.workload, cell.phase, cell.task_seconds) in compared)
