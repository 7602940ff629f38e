"""Notes beside numbers: a slow process that a robust ratio hides, and what widened an interval."""

from __future__ import annotations

from math import sqrt
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.noise import PairNoise

# Among four rounds, such a process moves the mean by an eighth, and a robust ratio hardly.  Of the 113 cells of the
# runs in results/example, on virtual machines, 5 have one, and 11 one of 1.4.
SLOW = 1.5


def slowest_process(seconds: Collection[float]) -> float | None:
    """Return the time of the slowest process over the median of all, None if there are too few to tell."""
    return max(seconds) / median(seconds) if len(seconds) >= MIN_ROUNDS else None


def process_notes(slowest: float | None) -> tuple[Note, ...]:
    """Return the note on a slow process behind a cell's number; `slowest` is that of `slowest_process`."""
    if slowest is None or slowest < SLOW:
        return ()
    return (Note(text=f"the slowest process took {slowest:.1f} times the median"),)


def noise_notes(noise: PairNoise, clock: Clock) -> Iterator[Note]:
    """Yield the reasons for an interval wider than the usual noise of its group makes it.

    Args:
        noise: That of the pair, see `Noise.between`.
        clock: The clock of the ratio.
    """
    if correlation := noise.correlation.applied:
        times = sqrt((1 + correlation) / (1 - correlation))
        yield Note(text=f"successive rounds are somewhat alike (correlation {correlation:.2f}): intervals of "
                        f"{clock_text(clock)} are widened {times:.1f} times for it "
                        f"({chance_text(noise.correlation.chance)})")


def chance_text(chance: float) -> str:
    """Return a p-value: "p = 0.012", "p < 0.001"."""
    return "p < 0.001" if chance < 0.001 else f"p = {chance:.2g}"  # three decimals
