"""What rounds have measured on a build, and what one build costs against another by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Cost
from gilscope.toolkit.stats.paired import compare_paired

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.sections import Measure

FORCED_OFF = {"PYTHON_GIL": "0"}   # for a build without a GIL, whatever is imported; one with a GIL refuses to start


@dataclass(slots=True)
class Measured:
    """All rounds of one cell."""

    wall: dict[int, float] = field(default_factory=dict)   # seconds by round; starved rounds are left out
    cpu: dict[int, float] = field(default_factory=dict)
    rss: list[float] = field(default_factory=list)         # bytes
    imports: list[float] = field(default_factory=list)     # seconds
    idle: dict[int, float] = field(default_factory=dict)   # seconds neither run nor waited for a core, of one thread
    pools: dict[str, int] = field(default_factory=dict)    # threads that C libraries would start, by library
    failure: str = ""
    flipped: str = ""            # "the GIL was on at the end ...", of a build without one
    unavailable: bool = False    # the failure is the model's: this build does not have it


def cost_of(here: Measured, there: Measured, against: str, by: Measure) -> Cost:
    """Return what two builds have measured in the same rounds, at least one."""
    resident = [median(each.rss) for each in (here, there)]
    return Cost(
        against=against, cpu=compare_paired(there.cpu, here.cpu), rss=resident[0] / resident[1],
        more_bytes=resident[0] - resident[1], by=by, import_seconds=median(here.imports) if here.imports else None,
        import_there=median(there.imports) if there.imports else None)
