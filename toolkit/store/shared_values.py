"""Raw values that are there twice: a copy of a run, or of a part of it, is no second measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from gilscope.toolkit.model import Run


def value_marks(run: Run) -> frozenset[int]:
    """Return a number for each process of a run; a process in another run with the same number is the same one.

    A process without start times whose values are all equal has none: two processes may agree in so little.
    """
    return frozenset(hash((measurement.cell, each.wall, each.cpu, each.began))
                     for measurement in run.measurements for each in measurement.observations
                     if each.began or len(set(each.wall)) > 1)


def refuse_shared_values(first: Run, second: Run, names: tuple[str, str]) -> None:
    """Check that no process is in both of two runs, which are called `names`.

    Raises:
        ToolkitError: Some are: the runs are not independent, so no interval or verdict on their ratios holds.
    """
    one, other = value_marks(first), value_marks(second)
    if shared := len(one & other):
        raise ToolkitError(
            f"{names[0]} and {names[1]} share raw values: {shared} of the {len(one)} processes of {names[0]} are among "
            f"the {len(other)} of {names[1]}, as in a copy of a run or in a part of it. They are not independent, so "
            "nothing is judged: compare two runs that were measured separately")
