"""The shift that workloads of two runs have in common, which may be the machine's.

The cells of two runs that were made at different times move together if the machine got slower or faster in between,
and also if the builds or the code did.  The numbers do not tell the two apart, so this module asks three questions:

- May workloads have moved the same way?  A change of one workload moves only its own cells, however many they are.
  The test is whether a majority of p-values is so small by chance, if no workload moved.  Each build must have moved:
  the same work on a build that did not move shows that the machine did not change.  It errs on the side of withholding
  verdicts: if one or half of the workloads moved, it often finds a shift, too.  That most of them moved is another
  question, for the words of the report: a partial conjunction, at least u of n, u being a majority.
- How far?  The shift is the median over workloads, weighted by how precise they are.  Workloads do not respond equally
  to a machine, so their scatter is part of the uncertainty; few workloads hardly show it, so it is moderated by what is
  typical.
- What remains of a cell?  Its ratio over the shift of the *other* workloads, as otherwise each workload would be
  compared with itself.

A verdict must hold whether none or all of the shift is the machine's: its interval covers both.  "Faster" and "slower"
must also where the first test finds no shift, as it has little power if workloads are noisy.  With one or two workloads
that moved, nothing estimates the shift, and the interval allows for a typical one instead.

Sources: Wilkinson (1951), "A Statistical Consideration in Psychological Research" (whether they may have moved);
Benjamini & Heller (2008), "Screening for Partial Conjunction Hypotheses", with the test of Simes (1986), "An Improved
Bonferroni Procedure for Multiple Tests of Significance" (whether most did); Zou & Donner (2008), "Construction of
Confidence Limits about Effect Measures: A General Approach" (intervals of independent parts are combined by the squares
of their half-widths).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import comb, exp, hypot, inf, isfinite, pi, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import t_outside
from gilscope.toolkit.stats.estimators import NORMAL_MAD
from gilscope.toolkit.stats.ratios import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.unpaired import ErrorPart, half_width, total_part
from gilscope.toolkit.stats.verdict import MIN_ROUNDS, ShiftAllowance, ShiftBasis, not_excluded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gilscope.toolkit.stats.unpaired import UnpairedRatio

ENOUGH = 3               # workloads: with two, nobody knows which of them the machine moved
TYPICAL_SHIFT = 0.15     # standard deviation of a log time between two runs of one machine, see docs/measuring.md
TYPICAL_SCATTER = 0.01   # standard deviation of workloads around the shift, at least
PROPORTIONAL = 0.15      # the same as a share of a small shift
GROWTH = 2.0             # of that share with the shift: at 5 % it is 0.25, at 40 % it is 0.95
PRIOR = 4.0              # degrees of freedom of the typical scatter: as many as five workloads have
MEDIAN = pi / 2          # variance of a median of normal values, relative to that of their mean


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildWorkload:
    """The workload and the build of a cell; cells of one workload respond alike to the machine."""

    workload: str
    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadShift:
    """The movement of a workload: the median over its cells, the mean over its builds."""

    workload: str
    center: float   # log ratio; > 0: faster in the second run
    half: float     # half-width of its 95 % interval, in logs

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the ratio."""
        return exp(self.center - self.half), exp(self.center + self.half)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonShift:
    """The movement that workloads of two runs seem to have in common, by one clock."""

    clock: str
    basis: ShiftBasis
    center: float                          # log ratio; > 0: faster in the second run
    half: float                            # half-width of its 95 % interval, in logs
    workloads: tuple[WorkloadShift, ...]   # all of them, the slowest first
    of_most: bool                          # a majority of them surely moved
    same_builds: bool = False              # the builds look the same in both runs

    @property
    def ratio(self) -> float:
        """Return the estimate: 0.9 is 1.11 times the time."""
        return exp(self.center)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the ratio; 0 and infinity if nothing is known."""
        if self.half >= MOST_LOG:
            return 0.0, inf
        return exp(self.center - self.half), exp(self.center + self.half)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The cells of one workload on one build."""

    workload: str
    build: str
    center: float
    error: ErrorPart


@dataclass(frozen=True, slots=True, kw_only=True)
class _Centre:
    """The centre of several workloads, with its own error and the scatter of workloads around it."""

    center: float
    scatter: float     # variance of the workloads' true movements
    error: float       # variance of the centre
    freedom: float     # of both


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedRatio:
    """The ratio of a cell of two runs that have a common shift, or may have one."""

    raw: UnpairedRatio
    basis: ShiftBasis
    center: float               # log of what remains of the ratio
    shift: ErrorPart            # the error by the shift
    cells: int                  # that are judged together
    workloads: int              # that share the shift
    found: bool                 # there is one; otherwise it is not excluded

    @property
    def ratio(self) -> float:
        """Return the ratio with the shift in it, as the times show it."""
        return self.raw.ratio

    @property
    def rounds(self) -> int:
        """Return the number of rounds of the run with fewer."""
        return self.raw.rounds

    @property
    def floor(self) -> float:
        """Return the noise floor between two such runs, as a share."""
        return self.raw.floor

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the ratio with the shift in it."""
        return self.raw.interval(confidence)

    def remaining(self, confidence: float = CONFIDENCE, together: float | None = None) -> tuple[float, float]:
        """Return the interval of the ratio without the shift.

        Args:
            confidence: Of the cell's own part.
            together: Of the part that all cells of a workload share; None: the same.
        """
        sides = (self.raw.before, self.raw.after)
        own = half_width([part for side in sides for part in side.parts(side.own)[:-1]], confidence)
        shared = half_width([*(side.machine for side in sides), self.shift], together or confidence)
        half = sqrt(own**2 + shared**2)
        return (exp(self.center - half), exp(self.center + half)) if half < MOST_LOG else (0.0, inf)

    def between(self, confidence: float) -> tuple[float, float]:
        """Return the range of ratios that is not excluded, whether none or all of the shift is the machine's."""
        # Cells are judged at once, but what workloads share errs as often as there are workloads.
        together = confidence ** (self.cells / self.workloads)
        rest = not_excluded(exp(self.center), self.remaining(confidence, together), self.floor)
        raw = self.raw.between(confidence)
        if not self.found and raw[0] <= 1 <= raw[1]:      # a difference that nobody sees needs no other explanation
            return raw
        return min(raw[0], rest[0]), max(raw[1], rest[1])

    def allowance(self, confidence: float) -> ShiftAllowance:
        """Return the ratio without the shift."""
        lo, hi = self.remaining()
        return ShiftAllowance(basis=self.basis, ratio=exp(self.center), lo=lo, hi=hi,
                              without=self.raw.between(confidence))


def common_shift[Key: Hashable](
    ratios: Mapping[Key, UnpairedRatio], places: Mapping[Key, BuildWorkload], clock: str,
) -> CommonShift | None:
    """Return the shift that workloads seem to have in common, None if the noise explains it.

    Args:
        ratios: The second run against the first, all by one clock.
        places: The workload and the build of each.
        clock: The name of the clock.
    """
    blocks = _blocks(ratios, places)
    if not _moved_together(blocks, some_moved):
        return None
    of_most = _moved_together(blocks, most_moved)
    workloads = _workloads(blocks)
    workloads.sort(key=lambda each: each.center)
    if len(workloads) < ENOUGH:
        return CommonShift(
            clock=clock, basis=ShiftBasis.TYPICAL, center=fmean(each.center for each in workloads),
            half=hypot(*(each.half for each in workloads)) / len(workloads), workloads=tuple(workloads),
            of_most=of_most)
    found = _centre(blocks)
    return CommonShift(
        clock=clock, basis=ShiftBasis.WORKLOADS, center=found.center, workloads=tuple(workloads), of_most=of_most,
        half=half_width([ErrorPart(square=found.error, freedom=found.freedom)], CONFIDENCE))


def without_shift[Key: Hashable](
    ratios: Mapping[Key, UnpairedRatio], places: Mapping[Key, BuildWorkload], basis: ShiftBasis | None, cells: int,
) -> dict[Key, ShiftedRatio]:
    """Return each ratio without the shift of the other workloads; none if nothing is known of it.

    Args:
        ratios: Those of `common_shift`.
        places: The workload and the build of each.
        basis: What the shift is known by; None if none was found, which does not exclude one: two noisy workloads hide
            the shift of two others.  Then a workload has moved as far as on the build on which it moved least.
        cells: The number of cells that are judged together.
    """
    blocks = _blocks(ratios, places)
    names = dict.fromkeys(each.workload for each in blocks)
    if basis is None:
        if len(names) == 1:
            return {}
        blocks = [min((each for each in blocks if each.workload == name), key=lambda each: abs(each.center))
                  for name in names]
    others = {name: [each for each in blocks if each.workload != name] for name in names}
    shifts: dict[str, tuple[float, ErrorPart]] = {}
    for name, rest in others.items():
        if basis is ShiftBasis.TYPICAL:
            shifts[name] = 0.0, ErrorPart(square=TYPICAL_SHIFT**2, freedom=inf)
        else:
            found = _centre(rest)
            shifts[name] = found.center, ErrorPart(square=found.scatter + found.error, freedom=found.freedom)
    return {
        key: ShiftedRatio(
            raw=ratio, basis=basis or ShiftBasis.WORKLOADS, center=ratio.log - shifts[places[key].workload][0],
            shift=shifts[places[key].workload][1], cells=cells, workloads=len(names), found=basis is not None)
        for key, ratio in ratios.items() if places[key].workload in shifts
    }


def _blocks[Key: Hashable](ratios: Mapping[Key, UnpairedRatio], places: Mapping[Key, BuildWorkload]) -> list[_Block]:
    """Return the centre of each workload on each build; cells whose noise is unknown say nothing."""
    found: dict[BuildWorkload, list[UnpairedRatio]] = {}
    for key, ratio in ratios.items():
        if ratio.rounds >= MIN_ROUNDS and isfinite(ratio.floor):
            found.setdefault(places[key], []).append(ratio)
    return [
        _Block(workload=place.workload, build=place.build, center=median(each.log for each in cells),
               error=_error(cells))
        for place, cells in found.items()
    ]


def _error(cells: Sequence[UnpairedRatio]) -> ErrorPart:
    """Return the error of the median of cells: their own errors average out, the effects of rounds do not."""
    times = (MEDIAN if len(cells) > 2 else 1.0) / len(cells)  # the median of two is their mean
    parts = []
    for sides in ([each.before for each in cells], [each.after for each in cells]):
        # The error of an arm that is alone in its run is the rounds', and `kept` is 0.
        own = fmean(side.own.square * side.kept for side in sides) * times
        parts.append(ErrorPart(square=own, freedom=sum(side.own.freedom for side in sides)))
        parts.append(ErrorPart(square=fmean(side.machine.square for side in sides),
                               freedom=fmean(side.machine.freedom for side in sides)))
    return total_part(parts)


def _moved_together(blocks: Sequence[_Block], moved: Callable[[Sequence[float]], bool]) -> bool:
    """Return True if workloads `moved` on every build, by their p-values, all builds the same way."""
    builds: dict[str, list[_Block]] = {}
    for each in blocks:
        builds.setdefault(each.build, []).append(each)
    return bool(builds) and any(
        all(moved([_chance(each, way) for each in own]) for own in builds.values()) for way in (1, -1))


def _chance(block: _Block, way: int) -> float:
    """Return the one-sided p-value of a movement that way, +1 for faster and -1 for slower."""
    if not block.error.square:
        return 0.0 if block.center * way > 0 else 1.0
    outside = t_outside(abs(block.center) / sqrt(block.error.square), block.error.freedom) / 2
    return outside if block.center * way > 0 else 1 - outside


def some_moved(chances: Sequence[float]) -> bool:
    """Return True if a majority of p-values is smaller than chance explains if no workload moved."""
    count = len(chances)
    least = count // 2 + 1
    chance = sorted(chances)[least - 1]
    at_least = sum(comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(least, count + 1))
    return at_least <= (1 - CONFIDENCE) / 2


def most_moved(chances: Sequence[float]) -> bool:
    """Return True if a majority of workloads moved: a test of the partial conjunction, two-sided with both ways.

    If no majority moved, at least n - u + 1 of n workloads did not.  Their p-values are at most the n - u + 1 largest,
    so Simes' test of the largest holds for them, whichever they are.
    """
    majority = len(chances) // 2 + 1
    largest = sorted(chances)[majority - 1:]
    return min(chance * len(largest) / rank for rank, chance in enumerate(largest, 1)) <= (1 - CONFIDENCE) / 2


def _typical_scatter(center: float) -> float:
    """Return the typical standard deviation of workloads around a shift: in a large one, some hardly move."""
    return max(TYPICAL_SCATTER, (PROPORTIONAL + GROWTH * abs(center)) * abs(center))


def weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """Return the median of values with weights, interpolated, so that a small change of weights changes it little.

    With equal weights, it is the median.
    """
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    below, last, place = 0.0, ordered[0][0], 0.0
    for value, weight in ordered:
        middle = below + weight / 2
        if middle >= half:
            return value if middle == place else last + (value - last) * (half - place) / (middle - place)
        below, last, place = below + weight, value, middle
    return last


def _by_workload(blocks: Iterable[_Block]) -> dict[str, list[_Block]]:
    found: dict[str, list[_Block]] = {}
    for each in blocks:
        found.setdefault(each.workload, []).append(each)
    return found


def _workloads(blocks: Iterable[_Block]) -> list[WorkloadShift]:
    """Return the movement of each workload, the mean over its builds, whose rounds are the same."""
    return [
        WorkloadShift(
            workload=name, center=fmean(each.center for each in own),
            half=half_width([max((each.error for each in own), key=lambda part: part.square)], CONFIDENCE))
        for name, own in _by_workload(blocks).items()
    ]


def _centre(blocks: Sequence[_Block]) -> _Centre:
    """Return the centre of workloads and how they scatter around it; each counts as much as it is precise."""
    workloads = _by_workload(blocks)
    # However precise a workload is, it says no more of the others than they scatter.
    scatter = _typical_scatter(median(fmean(each.center for each in own) for own in workloads.values())) ** 2
    weights = {name: 1 / (fmean(each.error.square for each in own) + scatter) for name, own in workloads.items()}
    # The number of equally precise workloads that would say as much (Kish 1965).
    count = sum(weights.values()) ** 2 / sum(weight**2 for weight in weights.values())
    center = weighted_median([(fmean(each.center for each in own), weights[name]) for name, own in workloads.items()])
    of_blocks = [weights[each.workload] / len(workloads[each.workload]) for each in blocks]
    distance = weighted_median([(abs(each.center - center), weight)
                                for each, weight in zip(blocks, of_blocks, strict=True)]) / NORMAL_MAD
    errors = sum(weight * each.error.square for each, weight in zip(blocks, of_blocks, strict=True)) / sum(of_blocks)
    typical = _typical_scatter(center) ** 2
    freedom = max((count - 1) / MEDIAN, min(count - 1, 1.0))
    moderated = (PRIOR * (typical + errors) + freedom * distance**2) / (PRIOR + freedom)
    # Workloads that scatter widely are believed at once: the typical scatter must not talk it down.
    total = max(moderated, distance**2)
    times = (1 + (MEDIAN - 1) * min(max(count - 2, 0.0), 1.0)) / count  # the median of two is their mean
    return _Centre(center=center, scatter=max(total - errors, typical), error=total * times, freedom=PRIOR + freedom)
