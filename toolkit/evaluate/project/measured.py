"""What rounds have measured on a build, and what one build costs against another by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Cost, Memory, Missing
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gilscope.toolkit.evaluate.sections import Measure
    from gilscope.toolkit.stats.words import Comparison

    Turn = Callable[[], AbstractContextManager[None]]   # is held while something is measured

SEED = 0   # of the order in which cells are measured: each evaluation has the same
FORCED_OFF = {"PYTHON_GIL": "0"}   # for a build without a GIL, whatever is imported; one with a GIL refuses to start

FEW = Missing(reason=f"there was time for fewer than {MIN_ROUNDS} rounds: a larger --budget takes more", passing=True)


@dataclass(slots=True)
class Measured:
    """All rounds of one cell."""

    wall: dict[int, float] = field(default_factory=dict)   # seconds by round; starved rounds are left out
    cpu: dict[int, float] = field(default_factory=dict)
    rss: list[float] = field(default_factory=list)         # bytes
    imports: list[float] = field(default_factory=list)     # seconds
    idle: dict[int, float] = field(default_factory=dict)   # seconds neither run nor waited for a core, of one thread
    pools: dict[str, int] = field(default_factory=dict)    # threads that C libraries would start, by library
    given: list[list[str]] = field(default_factory=list)   # by process: what it gave in the main thread, in another
    compiled: tuple[str, ...] | None = None   # extension modules of the project's own that it loaded; None: not known
    failure: str = ""
    flipped: str = ""            # "the GIL was on at the end ...", of a build without one
    unavailable: bool = False    # the failure is the model's: this build does not have it


# Which process was looked at, in words.
PROCESS: dict[Measure, str] = {
    "workload": "the process of the workload with one thread", "script": "the script's process",
    "tests": "the largest process of the tests"}


def cost_of(here: Measured, there: Measured, cpu: Comparison | None, against: str, by: Measure) -> Cost | Missing:
    """Return what a build takes against another.

    Args:
        here: What was measured on it.
        there: And on the other, in the same rounds.
        cpu: The two by CPU time, by the noise of all that was measured in these rounds; None: too few rounds.
        against: Name of the other.
        by: What was measured.
    """
    if cpu is None:
        return FEW
    resident = [median(each.rss) for each in (here, there)]
    return Cost(
        against=against, cpu=cpu, rss=resident[0] / resident[1],
        memory=Memory(here=resident[0], there=resident[1], process=PROCESS[by]),
        more_bytes=resident[0] - resident[1], by=by, import_seconds=median(here.imports) if here.imports else None,
        import_there=median(there.imports) if there.imports else None, compiled=here.compiled,
        compiled_there=there.compiled)
