"""Read the metrics of a cell that `gilscope.toolkit.metrics` declares.

This runs inside the measured process and imports little, so not even the declarations.  A reader gets the ids of the
measured process and its descendants and returns one number by name for all of them; None if the system has none.
"""

from __future__ import annotations

from gilscope.toolkit.measure.child.process_tree import memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Reader = Callable[[Sequence[int]], Mapping[str, float | None]]


def _memory(pids: Sequence[int]) -> Mapping[str, float | None]:
    resident, proportional = memory(pids)
    return {"rss_bytes": resident, "pss_bytes": proportional}


FINAL_READERS: tuple[Reader, ...] = (_memory,)   # read once, after the last value, while the pool is still open
# Totals that grow, such as an energy counter: read before and after each value, which gets the difference.
TOTAL_READERS: tuple[Reader, ...] = ()


def read_final(pids: Sequence[int]) -> dict[str, float]:
    """Return the metrics that are read once."""
    return _read(FINAL_READERS, pids)


def read_totals(pids: Sequence[int]) -> dict[str, float]:
    """Return the totals so far."""
    return _read(TOTAL_READERS, pids)


def growth(before: Mapping[str, float], after: Mapping[str, float], loops: int) -> dict[str, float]:
    """Return by how much totals grew in one of `loops` passes."""
    return {name: (total - before[name]) / loops for name, total in after.items() if name in before}


def _read(readers: Iterable[Reader], pids: Sequence[int]) -> dict[str, float]:
    readings = [item for read in readers for item in read(pids).items()]
    return {name: number for name, number in readings if number is not None}
