"""What one more worker takes, in words: for the screen, its table and the verdict.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.evaluation import Broken, Missing
from gilscope.toolkit.evaluate.project.machine import MOST_QUEUED
from gilscope.toolkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import InterpretersEvaluation, Spread, Worker, Workers

MOST_NAMED = 3
KEPT_MUCH = 2**20   # bytes that a destroyed interpreter leaves behind; 3.12, 3.13 and builds without a GIL: millions


def lines(found: Iterable[InterpretersEvaluation]) -> Iterator[str]:
    """Yield what one more worker takes on each build."""
    for each in found:
        if isinstance(each.workers, Missing | Broken):
            yield f"{each.build.label}: not known: {each.workers.reason}"
        else:
            yield f"{each.build.label}{_importing(each.workers.modules)}: {'; '.join(_parts(each.workers))}"


def takes(workers: Workers) -> Iterator[str]:
    """Yield what the verdict on interpreters must say of them: the price of one, and what it leaves behind."""
    here, there = _taken(workers.interpreter, workers), _taken(workers.process, workers)
    if here and there:
        yield f"each takes {here}{' to start' * may_tell_times(workers)} (a process {there})"
    if workers.kept is not None and workers.kept >= KEPT_MUCH:
        yield f"each that is destroyed leaves {format_bytes(workers.kept)} behind: make them once and keep them"


def growth(worker: Worker) -> str:
    """Return what a narrow column has room for."""
    return "" if worker.memory is None else f"+{format_bytes(worker.memory)}"


def may_tell_times(workers: Workers) -> bool:
    """Return whether they got a core when they wanted one."""
    return workers.run_queue is not None and workers.run_queue <= MOST_QUEUED


def _importing(modules: Sequence[str]) -> str:
    if not modules:
        return ", importing nothing"
    more = f" and {len(modules) - MOST_NAMED} more" if len(modules) > MOST_NAMED else ""
    return f", importing {', '.join(modules[:MOST_NAMED])}{more}"


def _parts(workers: Workers) -> Iterator[str]:
    kinds = {"interpreter": _taken(workers.interpreter, workers, spread=True),
             "new process": _taken(workers.process, workers, spread=True), "thread": _taken(workers.thread, workers)}
    if workers.modules and kinds["interpreter"]:
        kinds["interpreter"] += f" ({_taken(workers.bare, workers)} without the imports)"
    if told := [f"{name} {taken}" for name, taken in kinds.items() if taken]:
        yield ", ".join(told)
    destroying = [f"leaves {format_bytes(workers.kept)}"] if workers.kept is not None else []
    if may_tell_times(workers):
        destroying.insert(0, f"takes {format_seconds(workers.destroy.median)}")
    if destroying:
        yield f"destroying an interpreter {' and '.join(destroying)}"
    if workers.run_queue is None:
        yield "no word on times: the system does not tell who waited for a core"
    elif not may_tell_times(workers):
        yield f"no word on times: they waited {workers.run_queue * 100:.0f} % of their time for a core"


def _taken(worker: Worker, workers: Workers, *, spread: bool = False) -> str:
    """Return memory and start-up of one worker, as far as they are known and may be told."""
    memory = [] if worker.memory is None else [format_bytes(worker.memory)]
    start = _span(worker.start) if spread else format_seconds(worker.start.median)
    return " and ".join([*memory, *([start] if may_tell_times(workers) else [])])


def _span(spread: Spread) -> str:
    return f"{format_seconds(spread.median)} [{format_seconds(spread.lo)}, {format_seconds(spread.hi)}]"
