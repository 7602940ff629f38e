"""Interim looks: find the cells that need more rounds without inflating false positives by optional stopping.

Testing after every round and stopping as soon as an interval excludes 1 finds differences that do not exist: five looks
at 95 % have an error of 14 %.  So each interim look spends one hundredth of the error, and the last look has the rest.
A clear cell, 1.9x known to 3 %, passes the strict look at once, and the last look loses next to nothing.  For the same
reason a pair's spread counts as at least its group's.  Otherwise pairs whose few rounds agree by luck would stop.

A cell is clear early if its estimate happens to be large, so the estimates of cells that stop early are too large on
average.  So a clear cell takes part in every third of the first 12 rounds, whose values are not selected, as long as
others are open.  Cells that are clear later are hardly biased, and their rounds would cost the open ones more.
`tests/benchmarks/hostile_noise.py` measures what remains of the bias, and what these rounds cost.

Sources: Haybittle (1971), "Repeated Assessment of Results in Clinical Trials of Cancer Treatment"; Peto et al. (1976);
Jennison & Turnbull (2000), "Group Sequential Methods", sections 2.5 and 8.3 (the bias after early stopping).
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.model import FIRST_LOOK, MOST_LOOKS
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from gilscope.toolkit.stats.best import FastestRatio
    from gilscope.toolkit.stats.ratios import Ratio

SHARE = 0.01     # of the error, for each interim look; the largest number of looks spends a fifth of it
APART = 2        # rounds between two looks, at least
EVERY = 3        # rounds, in one of which clear cells take part; a half of the bias for a twentieth more processes
UNTIL = 12       # rounds: from then on clear cells take part in none
GROWTH = 4 / 3   # of the rounds from look to look; a third more rounds make an interval a seventh narrower


def is_look_due(rounds: int) -> bool:
    """Return True if an interim look is due after that many rounds: 4, 6, 8, 11, 15, 20, 27, ..., at most 20 looks."""
    at = FIRST_LOOK
    for _ in range(MOST_LOOKS):
        if at >= rounds:
            return at == rounds
        at = max(at + APART, ceil(at * GROWTH))
    return False


def includes_clear_cells(number: int) -> bool:
    """Return True if cells that are clear take part in round `number`, counted from 0."""
    return number < UNTIL and number % EVERY == EVERY - 1


def interim_confidence() -> float:
    """Return the confidence of a table at an interim look."""
    return 1 - (1 - CONFIDENCE) * SHARE


def final_confidence(looks: int) -> float:
    """Return the confidence of a table at the last look, which decides the printed verdicts, after `looks` others.

    Raises:
        ValueError: There are more looks than the error was divided among.
    """
    if looks > MOST_LOOKS:
        raise ValueError(f"{looks} looks before the last are more than {MOST_LOOKS}")
    return 1 - (1 - CONFIDENCE) * (1 - SHARE * looks)


def open_pairs[Pair: Hashable](
    ratios: Mapping[Pair, Ratio | FastestRatio[Any]], resolution: float | None = None,
) -> set[Pair]:
    """Return the pairs that need more rounds; at an interim look, at most `MOST_LOOKS` times.

    A pair that gets no more rounds keeps its verdict, as the last look requires less confidence.

    Args:
        ratios: All ratios of the table after the rounds so far, including those that got no more rounds.
        resolution: The requested half-width of 95 % intervals, as a share; None: any.
    """
    each = simultaneous(len(ratios), interim_confidence())
    seen = {pair: conclude(ratio.careful(), each) for pair, ratio in ratios.items()}
    return {pair for pair, comparison in seen.items() if comparison.verdict() == SpeedVerdict.CANNOT_TELL or (
        resolution is not None and sqrt(comparison.hi / comparison.lo) - 1 > resolution)}
