"""What a run lacks that is to go on: how many rounds, of which cells; or that it has all that is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.measure.plan.record import Request
from gilscope.toolkit.measure.schedule.failing import still_lacking
from gilscope.toolkit.store import load_run, read_header

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Cell, Run

CLEAR = frozenset({"answered", "resolution"})   # endings of a run whose cells needed no more rounds


class EnoughError(ToolkitError):
    """The run has what is asked for."""


def remaining(so_far: Run, rounds: int | None, resolution: float | None) -> tuple[Run, int, frozenset[Cell] | None]:
    """Return what is to be measured yet.

    Args:
        so_far: What there is; its values are looked at only where cells failed.
        rounds: That are asked for now; None: as many as were planned.
        resolution: Likewise, of ratios, 0..1.

    Returns:
        The run as what goes on begins with it, how many rounds it is to have, and the cells to measure in the further
        ones; None: all.

    Raises:
        EnoughError: nothing.
    """
    settings = Request.from_options(so_far.options).settings
    planned = rounds or so_far.rounds_planned
    if resolution not in {None, settings.resolution}:
        so_far = replace(so_far, answered=())   # what was clear may not be known to that
    only = None
    if rounds is None and (planned <= so_far.rounds_done or so_far.stopped in CLEAR):
        more, lacking = still_lacking(so_far, settings.rounds)
        if more:
            planned, only = so_far.rounds_done + more, lacking
            so_far = replace(so_far, answered=())   # theirs is not, nor can be without all of these
    if so_far.rounds_done >= planned:
        raise EnoughError(f"{so_far.label} has its {so_far.rounds_done} rounds; --rounds with a larger number adds to "
                          "them")
    if so_far.stopped in CLEAR and so_far.answered:
        raise EnoughError(f"every answer of {so_far.label} is clear, so none of its cells needs more rounds; "
                          "--resolution 1% goes on until each ratio is known to 1 %")
    return so_far, planned, only


def has_enough(path: Path, rounds: int | None, resolution: float | None) -> bool:
    """Return whether the run in the folder `path` has what is asked for now; of a damaged one that is not known."""
    try:
        run = read_header(path)
        remaining(load_run(path) if run.failures else run, rounds, resolution)
    except EnoughError:
        return True
    except BadFileError:   # who goes on with it says what is wrong, and costs the others nothing
        return False
    return False
