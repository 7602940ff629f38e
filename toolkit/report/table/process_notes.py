"""Notes on processes of a cell that its ratio alone does not show: far ones, times at two levels, unusual spread."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.class_rounds import DISTINCT
from gilscope.toolkit.units import clock_text, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.report.table.far_groups import FarGroup, WorkerClass
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.two_levels import TwoLevels


_CELLS: dict[WorkerClass | None, str] = {
    "one": "the cells with one worker", "several": "the cells with several workers", None: "all cells of the workload",
}


def process_notes(
    far: Sequence[FarGroup], processes: int, levels: TwoLevels | None, unlike: float | None,
) -> Iterator[Note]:
    """Yield caveats about the processes behind a cell's number.

    Args:
        far: Its processes that are far from the others, the farthest first.
        processes: The number of all its processes.
        levels: The levels of its values.
        unlike: By what factor its processes differ more than those of the other cells, if they do.
    """
    if far:
        yield Note(text=_far_text(far, processes))
    if levels is not None:
        values = levels.at_low + levels.at_high
        yield Note(text=f"its times have two levels: {format_seconds(levels.low)} ({levels.at_low} of {values} values) "
                        f"and {format_seconds(levels.high)} ({levels.at_high}); ratios of it are of a mix of "
                        "both, and do not say what either level alone would give")
    if unlike is not None:
        yield Note(text=f"its processes differ {unlike:.1f} times as much as those of other cells: its intervals come "
                        "from its own rounds alone")


def _far_text(far: Sequence[FarGroup], processes: int) -> str:
    """Return "1 of 12 processes is 43 % slower than the others of its session; 1 is 10 % faster, beyond ..."."""
    parts = []
    for each in far:
        count, share = len(each.processes.rounds), each.processes.share
        of, others = "", ""
        if each is far[0]:
            of = f" of {processes} processes"
            others = " than the others" + ("" if each.session is None else f" of {_its(count)} session")
        parts.append(f"{count}{of} {'is' if count == 1 else 'are'} {abs(share) * 100:.0f} % "
                     f"{'slower' if share > 0 else 'faster'}{others}")
    rounds = sum(len(each.processes.rounds) for each in far)
    return (f"{'; '.join(parts)}, beyond what {_its(rounds)} round{'' if rounds == 1 else 's'} did to "
            f"{_CELLS[far[0].cells]}: unusual for this run's noise")


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def noise_notes(noise: Noise, clock: Clock) -> Iterator[Note]:
    """Yield the reasons for an interval wider than the usual noise of its group makes it.

    Args:
        noise: That of the pair, see `Noise.between`.
        clock: The clock of the ratio.
    """
    extra = noise.class_rounds
    if noise.pair is not None and noise.pair.moderated and extra.chance < DISTINCT:
        yield Note(text="some rounds disturbed cells with several workers and cells with one differently: intervals of "
                        f"{clock_text(clock)} between them are widened {sqrt(1 + extra.share):.1f} times for it "
                        f"({chance_text(extra.chance)})")
        if (lasting := extra.correlation.applied) and extra.correlation.significant:
            times = sqrt((1 + extra.share * (1 + lasting) / (1 - lasting)) / (1 + extra.share))
            yield Note(text="what disturbed one of these classes of cells lasted for several rounds (correlation "
                            f"{lasting:.2f}): these intervals of {clock_text(clock)} are widened {times:.1f} times "
                            f"more for it ({chance_text(extra.correlation.chance)})")
    if (correlation := noise.correlation.applied) and noise.correlation.significant:
        times = sqrt((1 + correlation) / (1 - correlation))
        yield Note(text=f"successive rounds are somewhat alike (correlation {correlation:.2f}): intervals of "
                        f"{clock_text(clock)} are widened {times:.1f} times for it "
                        f"({chance_text(noise.correlation.chance)})")


def chance_text(chance: float) -> str:
    """Return a p-value: "p = 0.012", "p < 0.001"."""
    return "p < 0.001" if chance < 0.001 else f"p = {chance:.2g}"  # three decimals
