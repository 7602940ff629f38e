"""What one more worker takes, in words: a part of the verdict on interpreters.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.machine_calibration import MOST_QUEUED
from gilscope.toolkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.sections import Spread, Worker, Workers

KEPT_MUCH = 2**20   # bytes that a destroyed interpreter leaves behind; 3.12, 3.13 and builds without a GIL: millions


def takes(workers: Workers) -> Iterator[str]:
    """Yield what the verdict on interpreters must say of them: the price of one, and what it leaves behind."""
    here, there = taken(workers.interpreter, workers), taken(workers.process, workers)
    if here and there:
        yield f"each takes {here}{' to start' * may_tell_times(workers)} (a process {there})"
    if workers.kept is not None and workers.kept >= KEPT_MUCH:
        yield f"each that is destroyed leaves {format_bytes(workers.kept)} behind: make them once and keep them"


def may_tell_times(workers: Workers) -> bool:
    """Return whether they got a core when they wanted one."""
    return workers.run_queue is not None and workers.run_queue <= MOST_QUEUED


def taken(worker: Worker, workers: Workers, *, spread: bool = False) -> str:
    """Return memory and start-up of one worker, as far as they are known and may be told."""
    memory = [] if worker.memory is None else [format_bytes(worker.memory)]
    start = _span(worker.start) if spread else format_seconds(worker.start.median)
    return " and ".join([*memory, *([start] if may_tell_times(workers) else [])])


def _span(spread: Spread) -> str:
    return f"{format_seconds(spread.median)} [{format_seconds(spread.lo)}, {format_seconds(spread.hi)}]"
