"""One arm in two runs that were made at different times: how it differs between them, without a single pair.

Within a run a level is its arm's, plus what its round had in common (the machine), plus the process's own error.  Of
two runs the rounds' shares do not cancel, so they are in the error: as a variance of their own, known from as many
rounds as there are, beside the moderated one of the processes.  The degrees of freedom of the sum are Satterthwaite's.
`tests/benchmarks/coverage.py` shows how often the intervals hold the truth.

Assumption: the machine was on average the same in both runs, and its rounds differ independently.  If it was not, all
arms have moved alike, and nothing in the two runs tells that from a change of all arms: that is why they should be
measured together instead.

Sources: Welch (1947), "The Generalization of 'Student's' Problem when Several Different Population Variances are
Involved"; Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components"; for the moderated
variances see `noise`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import exp, inf, sqrt
from statistics import fmean, variance
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.estimators import HUBER, huber
from gilscope.toolkit.stats.log_times import fit
from gilscope.toolkit.stats.noise import scale_of_differences
from gilscope.toolkit.stats.ratios import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import left_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.noise import Noise



@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a squared error."""

    square: float
    freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Where an arm lies by one run."""

    center: float        # log seconds
    rounds: int
    own: Part            # of the center, by the errors of its own processes, moderated by the group's
    usual: Part          # likewise by the group's alone: what any arm of it has
    machine: Part        # of the center, by what rounds have in common
    kept: float          # how much of a process's error what its round has in common leaves in it: 1 - 1 / arms

    def parts(self, own: Part) -> list[Part]:
        """Return what the squared error of the center comes from, with one of its two own parts."""
        return [Part(square=own.square * self.kept, freedom=own.freedom), self.machine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """How many times faster an arm is in the second of two runs."""

    before: Level
    after: Level
    twins_off: float = 0.0   # what A/A arms of either run were off by at most, a share: the floor is not below it

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast as in the first run."""
        return exp(self.before.center - self.after.center)

    @property
    def rounds(self) -> int:
        """Return the fewer rounds of the two runs."""
        return min(self.before.rounds, self.after.rounds)

    @property
    def floor(self) -> float:
        """Return what the same arm may differ by between two such runs, as a share."""
        half = _half([*self.before.parts(self.before.usual), *self.after.parts(self.after.usual)], CONFIDENCE)
        return max(exp(half) - 1, self.twins_off) if half < MOST_LOG else inf

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ratios between which the truth lies with `confidence`; 0 and infinity where nothing is known."""
        half = _half([*self.before.parts(self.before.own), *self.after.parts(self.after.own)], confidence)
        return (self.ratio * exp(-half), self.ratio * exp(half)) if half < MOST_LOG else (0.0, inf)

    def between(self, confidence: float) -> tuple[float, float]:
        """Return the ratios that a word leaves open."""
        return left_open(self.ratio, self.interval(confidence), self.floor)

    @property
    def half(self) -> float:
        """Return half of the 95 % interval as a share."""
        return self.interval()[1] / self.ratio - 1

    @property
    def half_together(self) -> float | None:
        """Return half of the interval that as many rounds of one run with both sides would have, as a share.

        None where a run has no other arm that tells the machine's part from the processes' own.
        """
        if not (self.before.kept and self.after.kept):
            return None
        half = _half([self.before.own, self.after.own], CONFIDENCE)
        return exp(half) - 1 if half < MOST_LOG else inf


def level[Arm: Hashable](logs: RoundLogs[Arm], noise: Noise, arm: Arm) -> Level:
    """Return where an arm lies by its run.

    Args:
        logs: Of its group; the arm has one round or more.
        noise: Of its group.
        arm: One of them.
    """
    values = logs.levels[arm]
    found = fit(logs)
    if found is None or arm not in found.residuals:   # alone: what its rounds have in common is its own
        square = variance(values.values()) / len(values) if len(values) > 1 else inf
        return Level(
            center=_middle([*values.values()], (*sorted(values.values()),)), rounds=len(values), kept=0.0,
            own=Part(square=square, freedom=len(values) - 1), usual=Part(square=square, freedom=len(values) - 1),
            machine=Part(square=square, freedom=len(values) - 1),
        )
    rest = found.residuals[arm]
    free, rounds = len(rest) - 1, len(found.shared)
    squares = noise.prior * noise.spread**2 if noise.prior else 0.0
    freedom = noise.prior + free
    own = noise.spread**2 if freedom == inf else (squares + free * fmean(r * r for r in rest.values())) / freedom
    arms = sum(map(len, found.residuals.values())) / rounds
    times = noise.widening**2 / len(rest)
    return Level(
        center=_middle([values[r] - found.shared[r] for r in rest], noise.residuals),
        rounds=len(rest), kept=1 - 1 / arms,
        own=Part(square=own * times, freedom=freedom), usual=Part(square=noise.spread**2 * times, freedom=freedom),
        machine=Part(square=variance(found.shared.values()) / rounds, freedom=rounds - 1),
    )


def _middle(values: Sequence[float], errors: tuple[float, ...]) -> float:
    """Return where values lie whose errors are as far apart as `errors`, sorted."""
    return huber(values, HUBER * scale_of_differences(errors) / sqrt(2))


def _half(parts: Iterable[Part], confidence: float) -> float:
    known = [each for each in parts if each.square > 0]
    total = sum(each.square for each in known)
    if not total < inf:
        return inf
    if not known:
        return 0.0
    freedom = total**2 / sum(each.square**2 / each.freedom for each in known) if known else inf
    return t_quantile(confidence, freedom) * sqrt(total)
