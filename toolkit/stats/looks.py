"""Which cells need more rounds: looking at the data while they come in, without making the last look a lie.

Who looks after every round and stops when an interval excludes 1 finds differences where there are none: five looks at
95 % make 14 %.  So the looks on the way ask for nearly everything (a hundredth of the error each), and the last one has
what they leave.  A clear cell, 1.9x known to 3 %, passes the strict look at once; the last look loses next to nothing.
Being wide is no reason for such care: how wide an interval is says nothing of where it lies.

Sources: Haybittle (1971), "Repeated Assessment of Results in Clinical Trials of Cancer Treatment"; Peto et al. (1976);
Jennison & Turnbull (2000), "Group Sequential Methods", section 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.stats.ratios import MARGIN, judge, simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from gilscope.toolkit.stats.ratios import Ratio

Open = Literal["wide", "no word"]

SHARE = 0.01     # of the error, for each look before the last
MOST_LOOKS = 20  # before the last; they would take a fifth of its error


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the chance of a false word in a table is shared out over its cells and the looks at them."""

    cells: int                        # that get a word
    looks: int = 0                    # that were taken before the last one, at most `MOST_LOOKS`
    confidence: float = CONFIDENCE    # that a table has no false word at all

    def on_the_way(self) -> float:
        """Return the confidence of each cell's interval at a look before the last."""
        return simultaneous(self.cells, 1 - (1 - self.confidence) * SHARE)

    def at_last(self) -> float:
        """Return the confidence of each cell's interval at the last look, which the printed words go by."""
        return simultaneous(self.cells, 1 - (1 - self.confidence) * (1 - SHARE * min(self.looks, MOST_LOOKS)))


def open_pairs[Pair: Hashable](
    ratios: Mapping[Pair, Ratio], plan: Plan, *, margin: float = MARGIN, resolution: float | None = None,
) -> dict[Pair, Open]:
    """Return the pairs that need more rounds, and why; to be asked before the last look, at most `MOST_LOOKS` times.

    A pair that is left alone keeps the word it has: at the last look its interval is narrower than this one.

    Args:
        ratios: What there is after the rounds so far.
        plan: Of the whole table.
        margin: What "no difference" means.
        resolution: Half of a 95 % interval's width that is asked for, as a share; None: any.
    """
    found: dict[Pair, Open] = {}
    for pair, ratio in ratios.items():
        if judge(ratio, plan.on_the_way(), margin).word == "cannot tell":
            found[pair] = "no word"
        elif resolution is not None and expm1(ratio.half()) > resolution:
            found[pair] = "wide"
    return found
