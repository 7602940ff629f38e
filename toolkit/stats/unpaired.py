"""Compare an arm between two runs that were made at different times, so that no rounds can be paired.

Within a run, a log time is the level of its arm, plus the effect of its round (the machine), plus the error of the
process.  Between two runs the effects of rounds do not cancel, so they add a variance component of their own, with the
degrees of freedom of the rounds, to the moderated one of the processes.  The degrees of freedom of the sum are
Satterthwaite's.  `tests/benchmarks/coverage.py` measures the coverage of the intervals.

The noise of each run is that of `noise`: an arm that errs unlike the others has its own spread alone; if rounds disturb
one class of arms alone, the effects of rounds are those of the arm's class; if the errors of successive rounds are
correlated, those of processes count more.  A run with several sessions has a level in each.  From three sessions on, a
session takes the place of a round: what sessions do to all arms, to a class, and to an arm by itself is then in the
interval.

Assumption: the machine was on average the same in both runs, and its rounds differ independently.  Otherwise arms
shift together, which two runs cannot distinguish from a change of all arms; measuring both sides in one run can.  So a
ratio of two runs has no verdict.

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
from gilscope.toolkit.stats.estimators import HUBER, huber, scale_of_differences
from gilscope.toolkit.stats.log_times import RoundLogs, fit
from gilscope.toolkit.stats.noise import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.serial_correlation import inflation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.stats.noise import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPart:
    """A variance component of an estimate."""

    square: float
    freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLevel:
    """The level of an arm in one run."""

    center: float        # log seconds
    rounds: int
    own: ErrorPart       # the error of its processes, moderated by the group's
    machine: ErrorPart   # the error by the effects of rounds
    kept: float          # share of a process's error that remains after the round's effect is removed: 1 - 1 / arms

    @property
    def parts(self) -> list[ErrorPart]:
        """Return the variance components of the level."""
        return [ErrorPart(square=self.own.square * self.kept, freedom=self.own.freedom), self.machine]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpairedRatio:
    """The speed ratio of an arm in the second of two runs to the first."""

    before: RunLevel
    after: RunLevel

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast as in the first run."""
        return exp(self.before.center - self.after.center)

    @property
    def rounds(self) -> int:
        """Return the number of rounds of the run with fewer."""
        return min(self.before.rounds, self.after.rounds)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that covers the truth with `confidence`; 0 and infinity if nothing is known."""
        half = half_width([*self.before.parts, *self.after.parts], confidence)
        return (self.ratio * exp(-half), self.ratio * exp(half)) if half < MOST_LOG else (0.0, inf)


def run_level[Arm: Hashable](logs: RoundLogs[Arm], noise: Noise, arm: Arm) -> RunLevel:
    """Return the level of an arm in its run.

    Args:
        logs: The logs of its group; the arm has at least one round.
        noise: The noise of its group.
        arm: The arm.
    """
    values = logs.levels[arm]
    if own_class := noise.classes.get(arm):   # a round may disturb the arms of its class alone
        logs = RoundLogs(levels={other: levels for other, levels in logs.levels.items()
                                 if noise.classes[other].workers == own_class.workers})
    level_fit = fit(logs)
    if level_fit is None or arm not in level_fit.residuals:   # without other arms, its error includes the rounds'
        square = variance(values.values()) / len(values) if len(values) > 1 else inf
        return RunLevel(
            center=_middle([*values.values()], scale_of_differences(sorted(values.values())) / sqrt(2)),
            rounds=len(values), kept=0.0,
            own=ErrorPart(square=square, freedom=len(values) - 1),
            machine=ErrorPart(square=square, freedom=len(values) - 1),
        )
    errors = level_fit.residuals[arm]
    rounds = len(level_fit.shared)
    unlike = noise.unlike.get(arm)
    prior = 0.0 if unlike else noise.usual.prior   # an arm that errs unlike the others borrows nothing from them
    freedom = prior + len(errors) - 1
    squares = (len(errors) - 1) * fmean(error * error for error in errors.values())
    if prior:   # an unknown spread is infinite, and 0 times that is no number
        squares += prior * noise.arm.spread**2
    arms = sum(map(len, level_fit.residuals.values())) / rounds
    wider = noise.usual.widening * inflation(noise.usual.correlation.applied, len(errors))
    return RunLevel(
        center=_middle([values[r] - level_fit.shared[r] for r in errors], (unlike or noise.arm).scale),
        rounds=len(errors), kept=1 - 1 / arms,
        own=ErrorPart(square=squares / freedom * wider**2 / len(errors), freedom=freedom),
        machine=ErrorPart(square=variance(level_fit.shared.values()) / rounds, freedom=rounds - 1),
    )


def _middle(values: Sequence[float], scale: float) -> float:
    """Return Huber's estimate for values whose errors have this scale."""
    return huber(values, HUBER * scale)


def half_width(parts: Iterable[ErrorPart], confidence: float) -> float:
    """Return the half-width of the interval of an estimate with these variance components, infinite if unknown."""
    total = total_part(parts)
    if not total.square < inf:
        return inf
    return t_quantile(confidence, total.freedom) * sqrt(total.square) if total.square else 0.0


def total_part(parts: Iterable[ErrorPart]) -> ErrorPart:
    """Return the sum of independent variance components, with Satterthwaite's degrees of freedom."""
    known = [each for each in parts if each.square > 0]
    total = sum(each.square for each in known)
    if not known or not total < inf:
        return ErrorPart(square=total, freedom=inf)
    weights = sum(each.square**2 / each.freedom for each in known)
    return ErrorPart(square=total, freedom=total**2 / weights if weights else inf)
