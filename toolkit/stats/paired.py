"""Arms that were measured together: from their seconds to what may be said of each pair."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import expm1, isfinite
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.floor import checked_noise
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.ratios import compare, compare_pairs, simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import MIN_ROUNDS, Comparison

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.stats.floor import TwinCheck

FEW = Note(text=f"fewer than {MIN_ROUNDS} rounds: nothing can be called faster or slower")
UNKNOWN = Note(text="too few processes to know the noise: nothing can be called faster or slower")
UNCHECKED = Note(text="no cell was measured twice (A/A), so nothing checks the noise that the intervals go by")


class Together[Arm: Hashable]:
    """Arms that were measured in the same rounds, one number for each process, compared by the noise of them all."""

    def __init__(
        self, seconds: Mapping[Arm, Mapping[int, float]], twins: Sequence[tuple[Arm, Arm]] = (), *, clock: str = "wall",
    ) -> None:
        """Pool the noise.

        Args:
            seconds: By arm and round; what is not above 0 has no ratio and is left out.
            twins: A/A pairs: arms that are the same, which check the noise.
            clock: That gave the seconds, in a word.
        """
        self._clock = clock
        self._logs = RoundLogs.of_seconds({
            arm: {r: value for r, value in rounds.items() if value > 0} for arm, rounds in seconds.items()
        })
        noises, self._check = checked_noise({None: self._logs}, {None: twins})
        self._noise = noises[None]
        seen = compare_pairs(self._logs, self._noise, twins).values()
        self._twins_off = max((expm1(abs(each.center)) for each in seen), default=0.0)
        # Each but the twins has one baseline, or is one.
        self._confidence = simultaneous(len(seconds) - len(twins) - 1)

    def compare(self, baseline: Arm, sample: Arm) -> Comparison | None:
        """Return how many times faster `sample` is than `baseline`, None when the two share too few rounds for it."""
        if len(self._logs.difference(baseline, sample)) < MIN_ROUNDS:
            return None
        ratio = replace(compare(self._logs, self._noise, baseline, sample), twins_off=self._twins_off)
        return conclude(ratio, self._check, self._confidence, clock=self._clock)


class Estimated(Protocol):
    """How many times faster something is, with an interval at any confidence: of one run or of two."""

    @property
    def ratio(self) -> float:
        """The estimate: 2.0 is twice as fast."""

    @property
    def rounds(self) -> int:
        """From how many."""

    @property
    def floor(self) -> float:
        """What it may be off by where both sides are the same, as a share; infinite: not known."""

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ratios between which the truth lies; 0 and infinity where nothing is known."""

    def between(self, confidence: float) -> tuple[float, float]:
        """Return the ratios that a word leaves open: those of the interval, and what the floor allows for."""


def conclude(
    ratio: Estimated, check: TwinCheck, confidence: float, *, clock: str = "wall", notes: Sequence[Note] = (),
) -> Comparison:
    """Return what a ratio with the noise of its group comes to.

    Args:
        ratio: The sample against its baseline.
        check: What the A/A arms say of the noise that the ratio goes by.
        confidence: Of the interval that words go by; in a table `ratios.simultaneous`.
        clock: What the noise is of, in a word.
        notes: What else a reader must know; they come first.
    """
    lo, hi = ratio.interval()
    known = isfinite(ratio.floor) and lo > 0
    said = list(notes) if check.arms else [*notes, UNCHECKED]
    if ratio.rounds < MIN_ROUNDS:
        said.append(FEW)
    elif not known:
        said.append(UNKNOWN)
    if check.widening > 1:
        said.append(Note(text="cells measured twice (A/A) differ by more than the processes' noise explains: "
                              f"intervals of {clock} time are {check.widening:.1f} times wider for it"))
    return Comparison(
        ratio=ratio.ratio, lo=lo, hi=hi, confidence=CONFIDENCE, floor=ratio.floor if known else None,
        rounds=ratio.rounds, words=ratio.between(confidence), notes=tuple(said), sure=known,
    )
