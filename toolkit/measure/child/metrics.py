"""Read the metrics of a cell that `gilscope.toolkit.metrics` declares.

This runs inside the measured process and imports little, so not even the declarations.  A reader gets the ids of the
measured process and its descendants and returns one number by name for all of them; None if the system has none.
"""

from __future__ import annotations

from gilscope.toolkit.measure.child.process_tree import memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Reader = Callable[[Sequence[int]], Mapping[str, float | None]]


def _memory(pids: Sequence[int]) -> Mapping[str, float | None]:
    resident, proportional = memory(pids)
    return {"rss_bytes": resident, "pss_bytes": proportional}


READERS: tuple[Reader, ...] = (_memory,)   # read once, after the last value, while the pool is still open


def read_metrics(pids: Sequence[int]) -> dict[str, float]:
    """Return the metrics of the cell whose processes have these ids."""
    readings = [item for read in READERS for item in read(pids).items()]
    return {name: number for name, number in readings if number is not None}
