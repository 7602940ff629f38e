"""Which cells need more rounds: looking at the data while they come in, without making the last look a lie.

Who looks after every round and stops when an interval excludes 1 finds differences where there are none: five looks at
95 % make 14 %.  So the looks on the way ask for nearly everything (a hundredth of the error each), and the last one has
what they leave.  A clear cell, 1.9x known to 3 %, passes the strict look at once; the last look loses next to nothing.
For the same reason no pair stops for a spread that looks smaller than the group's: few rounds look calm by luck, and
the lucky ones would stop.

Sources: Haybittle (1971), "Repeated Assessment of Results in Clinical Trials of Cancer Treatment"; Peto et al. (1976);
Jennison & Turnbull (2000), "Group Sequential Methods", section 2.5.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, expm1
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.model import MOST_LOOKS
from gilscope.toolkit.stats.ratios import verdicts
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import MARGIN

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from gilscope.toolkit.stats.ratios import Ratio

Open = Literal["wide", "no word"]

SHARE = 0.01     # of the error, for each look before the last: the most there may be take a fifth of it
FIRST = 4        # rounds before the first look: with fewer a word has hardly a chance
APART = 2        # rounds between two looks, at least
GROWTH = 4 / 3   # times the rounds of one look: the next one; a third more rounds make an interval a seventh narrower


def look_after(rounds: int) -> bool:
    """Return whether there is a look after so many rounds: after 4, 6, 8, 11, 15, 20, 27, ..., at most 20 of them."""
    at = FIRST
    for _ in range(MOST_LOOKS):
        if at >= rounds:
            return at == rounds
        at = max(at + APART, ceil(at * GROWTH))
    return False


def on_the_way(confidence: float = CONFIDENCE) -> float:
    """Return the confidence of a table at a look before the last, when it is to have `confidence` in the end."""
    return 1 - (1 - confidence) * SHARE


def at_last(looks: int, confidence: float = CONFIDENCE) -> float:
    """Return the confidence of a table at the last look, which the printed words go by, after `looks` others.

    Raises:
        ValueError: More looks than the error was shared out for.
    """
    if looks > MOST_LOOKS:
        raise ValueError(f"{looks} looks before the last are more than {MOST_LOOKS}")
    return 1 - (1 - confidence) * (1 - SHARE * looks)


def open_pairs[Pair: Hashable](
    ratios: Mapping[Pair, Ratio], *, margin: float = MARGIN, resolution: float | None = None,
) -> dict[Pair, Open]:
    """Return the pairs that need more rounds, and why; to be asked before the last look, at most `MOST_LOOKS` times.

    A pair counts with the error that its group's spread gives it where its own is smaller.  One that is left alone
    keeps its word: the last look asks for less.

    Args:
        ratios: All of the table after the rounds so far, those that were left alone before among them.
        margin: What "no difference" means.
        resolution: Half of a 95 % interval's width that is asked for, as a share; None: any.
    """
    careful = {
        pair: replace(ratio, error=max(ratio.error, ratio.noise.pooled(ratio.rounds))) for pair, ratio in ratios.items()
    }
    found: dict[Pair, Open] = {}
    for pair, verdict in verdicts(careful, on_the_way(), margin).items():
        if verdict.word == "cannot tell":
            found[pair] = "no word"
        elif resolution is not None and expm1(careful[pair].half()) > resolution:
            found[pair] = "wide"
    return found
