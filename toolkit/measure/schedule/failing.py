"""Cells that fail: which are tried again in the next round, which are given up, which a finished run goes on with.

An accident (a process that is killed, a folder that is cleared away) costs one round of a cell.  What fails each time
must not cost the run its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import WRONG_RESULT

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from gilscope.toolkit.model import Cell, Failure, Run

HANG = "hang"
TRIES = 3        # rounds without a value, ever: enough to know that it is no accident
HANGS = 2        # of one cell: each costs a whole time limit
MOST_HANGS = 6   # of all cells: from then on one that hung is not tried again


def given_up(failures: Sequence[Failure], valued: Container[Cell]) -> set[Cell]:
    """Return the cells that are not worth a further round.

    Args:
        failures: Of this session; what failed in an earlier one may have been mended.
        valued: The cells that have a value of some round.
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


def still_lacking(run: Run, asked: int) -> tuple[int, frozenset[Cell]]:
    """Return how many rounds a finished run lacks by failures, and the cells to measure in them.

    They are those that failed and all that they are compared with: numbers of other rounds are not set against theirs.

    Args:
        run: What there is.
        asked: Rounds that were asked for; a run that its budget ended may have had fewer.
    """
    counts = {each.cell: len(each.observations) for each in run.measurements}
    wrong = {each.cell for each in run.failures if each.kind == WRONG_RESULT}
    ended = {each.cell for each in run.skips} | {*run.answered}
    whole = min(asked, run.rounds_done)
    lacking = {
        cell: whole - counts.get(cell, 0)
        for cell in {each.cell for each in run.failures} - wrong - ended if counts.get(cell, 0) < whole
    }
    compared = {(cell.workload, cell.phase, cell.task_seconds) for cell in lacking}
    return max(lacking.values(), default=0), frozenset(
        cell for cell in run.cells if (cell.workload, cell.phase, cell.task_seconds) in compared)
