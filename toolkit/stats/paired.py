"""Compare arms that were measured in the same rounds: from their seconds to the verdict of each pair."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.ratios import compare, simultaneous
from gilscope.toolkit.stats.verdict import MIN_ROUNDS, Comparison

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.stats.best import FastestRatio
    from gilscope.toolkit.stats.noise_floor import AACheck
    from gilscope.toolkit.stats.pair_kinds import ArmClass
    from gilscope.toolkit.stats.ratios import Ratio

UNKNOWN = Note(text="the noise is unknown (too few processes, or values that do not vary): nothing can be called "
                    "faster or slower")
UNCHECKED = Note(text="no cell was measured twice (A/A), so nothing checks the noise that the intervals go by: they "
                      "may be too narrow")


class PairedArms[Arm: Hashable]:
    """Arms that were measured in the same rounds, one number per process, compared by their pooled noise."""

    def __init__(
        self, seconds: Mapping[Arm, Mapping[int, float]], aa_pairs: Sequence[tuple[Arm, Arm]] = (), *,
        classes: Mapping[Arm, ArmClass] | None = None, clock: str = "wall time",
    ) -> None:
        """Pool the noise.

        Args:
            seconds: Seconds by arm and round; values that are not above 0 are left out.
            aa_pairs: A/A pairs: equal arms, which check the noise.
            classes: The class of every arm, see `noise.pool_noise`.
            clock: The name of the clock, for notes.
        """
        self._clock = clock
        self._logs = RoundLogs.of_seconds({
            arm: {r: value for r, value in rounds.items() if value > 0} for arm, rounds in seconds.items()
        })
        noises, self._check = checked_noise({None: self._logs}, {None: aa_pairs}, classes=classes)
        self._noise = noises[None]
        # Every arm except the A/A arms has one baseline, or is one.
        self._confidence = simultaneous(len(seconds) - len(aa_pairs) - 1)

    def compare(self, baseline: Arm, sample: Arm) -> Comparison | None:
        """Compare `sample` with `baseline`; None if the two share too few rounds."""
        if len(self._logs.difference(baseline, sample)) < MIN_ROUNDS:
            return None
        ratio = compare(self._logs, self._noise, baseline, sample)
        return conclude(ratio, self._confidence, self._check, clock=self._clock)


def conclude(
    ratio: Ratio | FastestRatio[Any], confidence: float, check: AACheck | None = None, *, clock: str = "wall time",
    notes: Sequence[Note] = (), rounds: int | None = None,
) -> Comparison:
    """Return the comparison for a ratio, with the notes that its noise requires.

    Args:
        ratio: The sample against its baseline.
        confidence: The confidence of the interval that decides the verdict; in a table `ratios.simultaneous`.
        check: The A/A check of the noise behind the ratio; None: no notes are needed.
        clock: The name of the clock, for notes.
        notes: Further notes; they come first.
        rounds: Behind the ratio, if its own are sessions; None: its own.
    """
    lo, hi = ratio.interval()
    rounds = rounds or ratio.rounds
    of_noise = () if check is None else _noise_notes(ratio, check, clock, rounds)
    return Comparison(
        ratio=ratio.ratio, lo=lo, hi=hi, floor=ratio.floor, rounds=rounds,
        verdict_interval=ratio.interval(confidence), notes=(*notes, *of_noise))


def _noise_notes(ratio: Ratio | FastestRatio[Any], check: AACheck, clock: str, rounds: int) -> Iterator[Note]:
    """Yield the notes that the noise of a ratio requires, see `conclude`."""
    if not check.arms:
        yield UNCHECKED
    if ratio.rounds < MIN_ROUNDS:
        unit = "rounds" if rounds < MIN_ROUNDS else "sessions"
        yield Note(text=f"fewer than {MIN_ROUNDS} {unit}: nothing can be called faster or slower")
    elif ratio.floor is None:
        yield UNKNOWN
    if check.widening > 1:
        yield Note(text="cells measured twice (A/A) differ by more than the processes' noise explains: "
                        f"intervals of {clock} are {check.widening:.1f} times wider for it")
