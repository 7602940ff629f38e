"""What one more worker takes, in words: for the screen and its table.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Broken, Missing
from gilscope.toolkit.evaluate.verdict.worker_price import may_tell_times, taken
from gilscope.toolkit.units import few, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import InterpretersEvaluation
    from gilscope.toolkit.evaluate.sections import Worker, Workers


def lines(found: Iterable[InterpretersEvaluation]) -> Iterator[str]:
    """Yield what one more worker takes on each build."""
    for each in found:
        if isinstance(each.workers, Missing | Broken):
            yield f"{each.build.label}: not known: {each.workers.reason}"
        else:
            yield f"{each.build.label}{_importing(each.workers.modules)}: {'; '.join(_parts(each.workers))}"


def growth(worker: Worker) -> str:
    """Return what a narrow column has room for."""
    return "" if worker.memory is None else f"+{format_bytes(worker.memory)}"


def _importing(modules: Sequence[str]) -> str:
    if not modules:
        return ", importing nothing"
    return f", importing {few(modules)}"


def _parts(workers: Workers) -> Iterator[str]:
    kinds = {"interpreter": taken(workers.interpreter, workers, spread=True),
             "new process": taken(workers.process, workers, spread=True), "thread": taken(workers.thread, workers)}
    if workers.modules and kinds["interpreter"]:
        kinds["interpreter"] += f" ({taken(workers.bare, workers)} without the imports)"
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
