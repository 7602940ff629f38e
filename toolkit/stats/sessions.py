"""Ratios over several sessions: what differs from session to session is part of the interval from three sessions on.

A session is a set of rounds at one time.  The log ratio of a pair in a session is its true log ratio, plus the joint
shift of the session, plus the pair's own deviation in the session, plus the error of the session's processes:

- The joint shift is common to all pairs of a family, such as all speed-ups of several workers: a neighbour on the
  machine slows all parallel work and no serial work.  It is one random variable for each session however many pairs
  there are, so it is estimated from the mean of the family in each session, with one degree of freedom fewer than
  sessions, and needs no correction for the number of pairs.
- The own deviations have a variance that is pooled over all pairs: each alone, three sessions would say nothing.

The estimate is the mean of the sessions' estimates, which all count alike: with a variance between sessions, more
rounds in one of them tell little more.  Pairs of rounds never cross sessions.

The interval of a pair adds the squares of two half-widths, one by Student's t of the joint shift, one of the rest; the
truth is inside with at least the confidence of both (Banerjee 1960).  A verdict adds the two half-widths, as the joint
shift must be inside for all pairs of a table at once, and each part has a share of the table's error.

Sources: Banerjee (1960), "Approximate Confidence Interval for Linear Functions of Means of k Populations when the
Population Variances are not Equal"; Mandel & Paule (1970), "Interlaboratory Evaluation of a Material with Unequal
Numbers of Replicates" (the variance by which pairs scatter as much as they should); Satterthwaite (1946).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.noise_floor import check_aa_pairs
from gilscope.toolkit.stats.ratios import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import not_excluded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.noise_floor import AACheck
    from gilscope.toolkit.stats.ratios import Ratio

FEWEST = 3          # sessions, from which on their differences are estimated: two can agree by chance
JOINT_SHARE = 0.8   # of a table's error, for the joint shifts: with few sessions their quantiles are by far the larger
SWEEPS = 20         # of the alternating fit; exact after one if every pair has every session


@dataclass(frozen=True, slots=True, kw_only=True)
class JointShift:
    """How much a session shifts all ratios of a family."""

    variance: float      # of one session's shift, in logs
    freedom: int
    pairs: int           # of the family, from which it is estimated

    def half(self, confidence: float, sessions: int) -> float:
        """Return the half-width of the interval of the mean shift over so many sessions."""
        return t_quantile(confidence, self.freedom) * sqrt(self.variance / sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDeviation:
    """How much the ratio of a pair differs from session to session beyond the joint shift and its processes' errors."""

    variance: float      # of one session's deviation, in logs; 0: the errors explain all
    uncertainty: float   # the variance of that estimate; infinite: nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRatio:
    """The speed ratio of an arm to its baseline over several sessions, with an interval at any confidence."""

    parts: tuple[Ratio, ...]             # one for each session
    shifts: tuple[JointShift, ...] = ()  # that it is subject to
    own: OwnDeviation | None = None      # None: too few sessions, so the interval is about these sessions alone
    joint_confidence: tuple[float, ...] = ()   # of the part of each shift in the interval that decides a verdict
    aa_error: float = 0.0                # the largest A/A difference, as a share: a lower bound of the noise floor

    @property
    def center(self) -> float:
        """Return the log of the ratio; > 0: faster than the baseline."""
        return fmean(part.center for part in self.parts)

    @property
    def noise(self) -> Noise:
        """Return the noise of the pair in its first session, whose tests are those of the whole run."""
        return self.parts[0].noise

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast."""
        return exp(self.center)

    @property
    def rounds(self) -> int:
        """Return the rounds of all sessions."""
        return sum(part.rounds for part in self.parts)

    @property
    def sessions(self) -> int:
        """Return the number of sessions that have the pair."""
        return len(self.parts)

    @property
    def floor(self) -> float:
        """Return the noise floor for that number of rounds, as a share."""
        return max(self.noise.floor(self.rounds), self.aa_error)

    def half(self, confidence: float = CONFIDENCE, shared: float | None = None) -> float:
        """Return the half-width of the interval, in logs.

        Args:
            confidence: Of the pair's own part.
            shared: Of the joint shifts, which hold for all pairs at once; None: the same.
        """
        joint = sum(shift.half(shared or confidence, self.sessions) ** 2 for shift in self.shifts)
        return max(sqrt(self._own_half(confidence) ** 2 + joint), self._within(confidence))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that covers the truth with `confidence`; 0 and infinity if nothing is known."""
        return self._around(self.half(confidence))

    def between(self, confidence: float) -> tuple[float, float]:
        """Return the range of ratios that a verdict does not exclude; `confidence` is that of the pair's own part."""
        joint = sum(shift.half(each, self.sessions)
                    for shift, each in zip(self.shifts, self.joint_confidence, strict=True))
        half = max(self._own_half(confidence) + joint, self._within(confidence))
        return not_excluded(self.ratio, self._around(half), self.floor)

    def _around(self, half: float) -> tuple[float, float]:
        return (exp(self.center - half), exp(self.center + half)) if half < MOST_LOG else (0.0, inf)

    @property
    def _square(self) -> float:
        """Return the variance of the estimate by its processes' errors."""
        return sum(part.error**2 for part in self.parts) / self.sessions**2

    @property
    def _freedom(self) -> float:
        """Return the degrees of freedom of that variance."""
        freedoms = [part.noise.freedom(part.rounds) for part in self.parts]
        squares = [(part.error / self.sessions) ** 2 for part in self.parts]
        lost = sum(square**2 / free for square, free in zip(squares, freedoms, strict=True) if free > 0)
        return sum(squares) ** 2 / lost if lost else inf

    def _within(self, confidence: float) -> float:
        """Return the half-width by the errors of processes alone: an interval about these sessions."""
        square = self._square
        if not 0 < square < inf:
            return sqrt(square)
        return self._factor(confidence) * t_quantile(confidence, self._freedom) * sqrt(square)

    def _factor(self, confidence: float) -> float:
        """Return by how much the noise's shape and its A/A check widen intervals, relative to Student's t."""
        factors = [(part.error**2, part.noise.reach(confidence, part.rounds)
                    / t_quantile(confidence, part.noise.freedom(part.rounds))) for part in self.parts]
        return sqrt(sum(square * factor**2 for square, factor in factors) / sum(square for square, _ in factors))

    def _own_half(self, confidence: float) -> float:
        """Return the half-width without the joint shifts."""
        if self.own is None:
            return self._within(confidence)
        # What all pairs of a family have in common is in its joint shift: with one pair, all of it.
        share = 1 - 1 / self.shifts[0].pairs if len(self.shifts) == 1 else 1.0
        within = self._square
        square = within + self.own.variance / self.sessions
        if not share or not square:
            return 0.0
        if not (square < inf and isfinite(self.own.uncertainty)):
            return inf
        doubt = self.own.uncertainty / self.sessions**2 + 2 * within**2 / self._freedom
        freedom = 2 * square**2 / doubt if doubt else inf
        factor = self._factor(confidence) if within else 1.0
        return factor * t_quantile(confidence, freedom) * sqrt(square * share)


def joint_shift[Pair: Hashable](family: Mapping[Pair, Mapping[int, Ratio]]) -> JointShift:
    """Return the joint shift of a family of pairs, each with its ratio by session."""
    centers = _centers(family)
    _, shifts, _ = _two_way(centers)
    # Sessions that no pair connects are centred apart, and each such block costs a degree of freedom.
    freedom = len(shifts) - len(blocks := _blocks(centers))
    squares = sum((shifts[each] - fmean(shifts[one] for one in block)) ** 2 for block in blocks for each in block)
    return JointShift(variance=squares / freedom if freedom > 0 else inf, freedom=freedom, pairs=max(len(family), 1))


def _blocks[Pair: Hashable](centers: Mapping[Pair, Mapping[int, float]]) -> list[set[int]]:
    """Return the sessions in groups that some pair connects, directly or through others."""
    blocks: list[set[int]] = []
    for values in centers.values():
        joined = set(values).union(*(block for block in blocks if block & values.keys()))
        blocks = [block for block in blocks if not block & joined] + [joined]
    return blocks


def _connected[Pair: Hashable](family: Mapping[Pair, Mapping[int, Ratio]]) -> list[dict[Pair, Mapping[int, Ratio]]]:
    """Return the family in parts whose sessions no pair connects: the shifts of each are fitted apart."""
    centers = _centers(family)
    return [{pair: family[pair] for pair, values in centers.items() if values.keys() <= block}
            for block in _blocks(centers)]


def own_deviation[Arm: Hashable](
    shifted: Iterable[Mapping[tuple[Arm, Arm], Mapping[int, Ratio]]],
    others: Mapping[tuple[Arm, Arm], Mapping[int, Ratio]],
) -> OwnDeviation:
    """Return the variance of the own deviations, pooled over all pairs of a run.

    Pairs with the same baseline share its deviation: by it, half of their variance is common.  The expected squares and
    the degrees of freedom take that into account.

    Args:
        shifted: Families that each have a joint shift: pairs (baseline, sample) with their ratio by session.
        others: Pairs without one.
    """
    squares: list[tuple[float, float]] = []   # of each residual, with the variance of its session's error
    expected = doubled = 0.0                  # squares, and squares of the variances that they add up from
    connected = [part for family in shifted for part in _connected(family)]
    for family, has_shift in [*((each, True) for each in connected), (others, False)]:
        centers = _centers(family)
        _, _, rest = _two_way(centers, shifts=has_shift)
        squares += [(value**2, family[pair][session].error ** 2)
                    for pair, residuals in rest.items() for session, value in residuals.items()]
        clusters = Counter(baseline for baseline, _ in centers).values()
        free = fmean(len(each) - 1 for each in centers.values()) if centers else 0.0
        common = sum((size + 1) / 2 for size in clusters), sum(((size + 1) / 2) ** 2 for size in clusters)
        left = (len(clusters) - has_shift) / len(clusters) if clusters else 0.0   # the shift removes one of these
        expected += free * (common[0] * left + sum(size - 1 for size in clusters) / 2)
        doubled += free * (common[1] * left + sum(size - 1 for size in clusters) / 4)
    squares = [(square, error) for square, error in squares if isfinite(error)]
    if not (expected and squares):
        return OwnDeviation(variance=0.0, uncertainty=inf)
    found = _variance_beyond(squares, expected)
    freedom = expected**2 / doubled
    weights = [1 / (found + error) ** 2 for _, error in squares if found + error > 0]
    return OwnDeviation(variance=found, uncertainty=2 / (fmean(weights) * freedom) if weights else 0.0)


def recheck_noise[Group: Hashable](
    noises: Mapping[Group, Noise], aa_pairs: Iterable[Ratio], own: OwnDeviation,
) -> tuple[dict[Group, Noise], AACheck]:
    """Return the noise of each group and its A/A check, if A/A arms may deviate in a session as all pairs do.

    Otherwise that deviation, which intervals hold already, would widen them once more.

    Args:
        noises: The noise within sessions.
        aa_pairs: The A/A ratios of each session.
        own: The own deviations of all other pairs.
    """
    check = check_aa_pairs([
        replace(each, error=sqrt(each.error**2 + own.variance), noise=replace(each.noise, widening=1.0))
        for each in aa_pairs])
    return {group: replace(noise, widening=check.widening) for group, noise in noises.items()}, check


def _variance_beyond(squares: Sequence[tuple[float, float]], expected: float) -> float:
    """Return the variance with which the squares, each over its own variance, add up to what is expected."""
    def excess(found: float) -> float:
        return sum(square / (found + error) for square, error in squares if found + error > 0) - expected

    if excess(0.0) <= 0 and all(error > 0 for _, error in squares):
        return 0.0
    low, high = 0.0, sum(square for square, _ in squares) / expected
    while high and excess(high) > 0:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _centers[Pair: Hashable](family: Mapping[Pair, Mapping[int, Ratio]]) -> dict[Pair, dict[int, float]]:
    """Return the log ratios by session of the pairs with at least two sessions."""
    return {pair: {session: ratio.center for session, ratio in ratios.items()}
            for pair, ratios in family.items() if len(ratios) > 1}


def _two_way[Pair: Hashable](
    centers: Mapping[Pair, Mapping[int, float]], *, shifts: bool = True,
) -> tuple[dict[Pair, float], dict[int, float], dict[Pair, dict[int, float]]]:
    """Return pairs, sessions and residuals of the additive fit by least squares; without `shifts`, no sessions."""
    rows = {pair: fmean(values.values()) for pair, values in centers.items()}
    columns = dict.fromkeys(sorted({session for values in centers.values() for session in values}), 0.0)
    for _ in range(SWEEPS if shifts else 0):
        columns = {session: fmean(values[session] - rows[pair] for pair, values in centers.items() if session in values)
                   for session in columns}
        rows = {pair: fmean(value - columns[session] for session, value in values.items())
                for pair, values in centers.items()}
    rest = {pair: {session: value - columns[session] - rows[pair] for session, value in values.items()}
            for pair, values in centers.items()}
    return rows, columns, rest


def confidences(together: float, builds: int, *, workers: bool) -> tuple[float, float, float]:
    """Divide the error of a table among the joint shifts that its verdicts use, and the rest of all pairs.

    Args:
        together: The confidence of the table, 0.95 without interim looks.
        builds: The number of shifts of builds against builds.
        workers: Pairs of one worker and several are compared.

    Returns:
        The confidence of the pairs' own parts together, that of the shift of several workers, and that of each shift of
        builds.
    """
    error = 1 - together
    joint = error * JOINT_SHARE if workers or builds else 0.0
    share = joint / 2 if workers and builds else joint
    return 1 - (error - joint), 1 - share, 1 - share / max(builds, 1)
