"""The measurements of rounds on a build, and the cost of one build compared with another."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Cause, Cost, Memory, Missing
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gilscope.toolkit.evaluate.sections import Measure
    from gilscope.toolkit.stats.verdict import Comparison

    HoldMachine = Callable[[], AbstractContextManager[None]]   # held during a measurement

SEED = 0   # of the random order of cells, the same for each evaluation
FORCED_OFF = {"PYTHON_GIL": "0"}   # for free-threaded builds only: a build with a GIL refuses to start with it

FEW = Missing(reason=f"there was time for fewer than {MIN_ROUNDS} rounds: a larger --budget takes more",
              cause=Cause.TIME)


@dataclass(slots=True)
class CellMeasurements:
    """The measurements of one cell in all rounds."""

    wall: dict[int, float] = field(default_factory=dict)   # seconds by round; starved rounds are left out
    cpu: dict[int, float] = field(default_factory=dict)
    rss: list[float] = field(default_factory=list)         # bytes
    imports: list[float] = field(default_factory=list)     # seconds
    pools: dict[str, int] = field(default_factory=dict)    # threads that C libraries would start, by library
    given: list[list[str]] = field(default_factory=list)   # by process: results in the main thread and in another
    compiled: tuple[str, ...] | None = None   # the project's own extension modules that were loaded; None if unknown
    failure: str = ""
    flipped: str = ""            # "the GIL was on at the end ...", on a free-threaded build
    unavailable: bool = False    # this build does not have the model


# The measured process, in words.
PROCESS: dict[Measure, str] = {
    "workload": "the process of the workload with one thread", "script": "the script's process",
    "tests": "the largest process of the tests"}


def cost_of(here: CellMeasurements, there: CellMeasurements, cpu: Comparison | None, against: str,
            by: Measure) -> Cost | Missing:
    """Return the cost of a build compared with another.

    Args:
        here: The measurements on the build.
        there: The measurements on the other, in the same rounds.
        cpu: The comparison of CPU times, with the noise of all measurements in these rounds; None if too few rounds.
        against: Name of the other build.
        by: What was measured.
    """
    if cpu is None:
        return FEW
    resident = [median(each.rss) for each in (here, there)]
    return Cost(
        against=against, cpu=cpu, memory=Memory(here=resident[0], there=resident[1], process=PROCESS[by]), by=by,
        import_seconds=median(here.imports) if here.imports else None,
        import_there=median(there.imports) if there.imports else None, compiled=here.compiled,
        compiled_there=there.compiled)
