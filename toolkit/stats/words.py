"""The word for a ratio: what its interval and the noise floor let anybody say."""

from __future__ import annotations

from math import inf, log, log1p
from typing import Literal

Word = Literal["faster", "slower", "no difference", "cannot tell"]

MIN_ROUNDS = 3       # one or two rounds agree by chance too often for any word
MARGIN = 0.03        # nobody moves code for less


def word_for(ratio: float, interval: tuple[float, float], floor: float, margin: float = MARGIN) -> Word:
    """Return the word for a ratio whose interval and noise floor are known."""
    lo, hi = interval
    if not lo <= 1 <= hi and abs(log(ratio)) > log1p(floor):
        return "faster" if lo > 1 else "slower"
    return "no difference" if beyond(interval) <= margin else "cannot tell"


def beyond(interval: tuple[float, float]) -> float:
    """Return the largest difference, as a share, that an interval of a ratio does not exclude."""
    lo, hi = interval
    return max(hi - 1, 1 / lo - 1) if lo > 0 else inf
