"""From what was measured to the verdict and its cause: pure functions, checked in this order.

Planted programs showed which measurement decides: making everything immortal speeds up programs that lose to reference
counts, and hardly any other; a lock that is held shows in its object's header; whether threads are idle or busy decides
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SCALES = 0.8           # of the ceiling; a smaller loss is not worth blaming anything for
NEAR = 0.05            # an estimate so far from `SCALES` decides if its interval reaches no farther beyond it
SURELY_SCALES = 0.7    # an open verdict is near to `SCALES` if the interval begins here or higher
SURELY_NOT = 0.9       # and ends here or lower
ACQUITTED = 1.2        # an interval of the gain that ends below acquits counts that explain less than half of the loss
CONTRAST = 1.25        # smaller differences between two pooled rates cannot be told on a busy machine
COUNTS_GAIN = 0.2      # share of the loss that everything immortal gains back where counts are to blame
COUNTS_GAIN_BESIDE_LOCK = 0.5   # where a lock is seen held, too: counts of what it protects rise with it
BESIDE_COLLECTOR = 1.15         # more than without the collector: immortality also makes collections cheap
LOCKED = 0.05          # share of samples in which a lock was held
SELDOM_LOCKED = 0.03   # likewise, where counts and the collector are excluded
HARDLY_LOCKED = 0.01   # less excludes that lock, too
MUCH_LOCKED = 0.2      # the same of a lock without a name, or where the rest of the evidence is from a busy machine
SURELY_DISTURBED = 0.7   # of the ceiling, by disturbed calls: neighbours hide contention, so the truth is below
QUIET = 0.8            # share of the threads' time in which they had cores
LEAST_CEILING = 0.7    # of the number of threads: what processes reach on idle cores
NEARLY_LOW = 0.75      # the same if it is near enough to leave it open whether the hardware is the limit
HALF_EXPLAINED = 0.5   # share of the loss: counts that may explain so much are not acquitted
EXPLAINS = 0.6         # share of the loss that a cause must explain: a named set, of what everything immortal gains
SURPRISING = 1.5       # times: so much cannot be the cost of counts that nobody contends for
SLOWER = 0.95          # of one thread's throughput


class ScalingVerdict(StrEnum):
    """The effect of more threads on the throughput."""

    SCALES = "scales"
    PLATEAUS = "plateaus"
    SLOWER = "gets slower"
    UNSURE = "unsure"


LOST = frozenset({ScalingVerdict.PLATEAUS, ScalingVerdict.SLOWER})


class Obstacle(StrEnum):
    """The obstacle that keeps a function from scaling; reports and JSON show the value."""

    NONE = "nothing to blame"
    HARDWARE = "hardware"
    COLLECTOR = "garbage collector"
    LOCK = "lock"
    COUNTS = "reference counts"
    NOT_YOUR_OBJECTS = "not your objects"
    UNKNOWN = "unknown"


class Doubt(StrEnum):
    """Why a verdict or its cause is open."""

    FEW_CLEAN = "few-clean"              # too little time in which all threads had their cores
    YIELDING = "threads-yield"           # likewise, because they wait for a lock, which is named
    SELDOM = "lock-seldom-held"          # nothing else is left, and a lock was held in few samples
    WIDE = "wide-interval"               # the interval includes both answers
    NEAR = "near-threshold"              # likewise, but it ends near to `SCALES` on both sides
    CONTRAST = "little-contrast"         # immortality may gain something
    COLLECTOR = "collector-open"         # so may the absence of the collector
    DISAGREE = "measurements-disagree"   # later measurements give different answers
    SURPRISE = "gain-without-loss"       # immortality gains much, although threads seem to reach the ceiling
    SET = "set-explains-little"          # no set of objects gains what all of them do
    REFUSED = "immortality-refused"      # the experiment cannot be made on this build
    RESULTS = "results-change"           # results differ with everything immortal
    HARDWARE = "hardware-open"           # threads reach a ceiling that may be low
    ONE_CORE = "one-core"                # threads ran as hyperthreads of one core, which hides contention


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A ratio of two rates with its 95 % interval."""

    ratio: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterLook:
    """The share of the ceiling and the speed-up, measured again some seconds after the verdict."""

    of_ceiling: Span      # threads against processes in the same moments
    speedup: Span         # threads against one


@dataclass(frozen=True, slots=True, kw_only=True)
class ContendedLock:
    """A lock that the sampler saw held."""

    number: int          # of the object
    held: float          # share of samples
    named: bool = True   # False: no way leads to it from the program, so it is the interpreter's, or C code's

    def is_held(self, least: float) -> bool:
        """Return True if it was held in so many samples; one without a name, in many."""
        return self.held >= (least if self.named else max(least, MUCH_LOCKED))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingEvidence:
    """The measurements of one function on one build; rates are calls a second of all threads together."""

    threads: int
    clean_seconds: float               # of the mode with the least
    enough: bool                       # every rate has the clean time it needs
    of_ceiling: Span | None            # threads against processes in the same moments
    speedup: Span | None               # threads against one
    ceiling: Span | None               # processes against one
    immortal: Span | None = None       # everything immortal against threads; None: not measured
    no_collector: Span | None = None   # without the collector against threads; None: not measured
    immortal_beside: float | None = None   # rate with everything immortal, in that without the collector
    collected: bool = False            # the collector ran while threads were measured
    locks: tuple[ContendedLock, ...] = ()   # those seen held, most often first
    on_cores: float = 1.0              # share of the threads' time in which they had cores
    disturbed: Span | None = None      # threads against processes by all calls, disturbed ones, too
    disturbed_immortal: Span | None = None   # everything immortal against threads, likewise
    refused: Doubt | None = None       # why immortality was not tried
    later: tuple[LaterLook, ...] = ()  # in turn; those without enough clean time are left out
    one_core: bool = False             # threads were measured as hyperthreads of one core alone
    far: bool = False                  # too few rounds were on near CPUs alone, so those on far ones count, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with its cause, or with what is in doubt."""

    verdict: ScalingVerdict
    obstacle: Obstacle
    doubt: Doubt | None = None


def judge(evidence: ScalingEvidence) -> Judgement:
    """Return verdict and cause; for reference counts, `counts_search` then finds the objects."""
    verdict, doubt = _verdict(evidence)
    if verdict is ScalingVerdict.UNSURE:
        # Near to `SCALES`, what threads lose is seldom nothing.
        counts = doubt is Doubt.NEAR and _obstacle(evidence)[0] is Obstacle.COUNTS
        return Judgement(verdict=verdict, obstacle=Obstacle.COUNTS if counts else Obstacle.UNKNOWN, doubt=doubt)
    if verdict is ScalingVerdict.SCALES:
        return Judgement(verdict=verdict, obstacle=Obstacle.HARDWARE) if _ceiling_is_low(evidence) else (
            _maybe_limited(evidence))
    if not evidence.enough:      # nothing else can be told without enough clean time
        return Judgement(verdict=verdict, obstacle=Obstacle.LOCK)
    obstacle, doubt = _obstacle(evidence)
    return Judgement(verdict=verdict, obstacle=obstacle, doubt=doubt)


def after_later_looks(judgement: Judgement, evidence: ScalingEvidence) -> Judgement:
    """Return the judgement that later looks support: near `SCALES`, or on a machine that changes, they may not.

    A verdict that a look contradicts is unsure.  Threads are slower than one, and hardware is the limit, only if no
    look denies it.
    """
    later = {_verdict(replace(evidence, of_ceiling=each.of_ceiling, speedup=each.speedup, immortal=None))[0]
             for each in evidence.later}
    if judgement.verdict is ScalingVerdict.SCALES and later & LOST:
        return Judgement(verdict=ScalingVerdict.UNSURE, obstacle=Obstacle.UNKNOWN, doubt=Doubt.DISAGREE)
    if judgement.verdict in LOST and ScalingVerdict.SCALES in later:
        return replace(judgement, verdict=ScalingVerdict.UNSURE, doubt=Doubt.DISAGREE)
    # Looks are short: a wide interval denies nothing.
    most = max((each.speedup.ratio for each in evidence.later), default=0.0)
    if judgement.obstacle is Obstacle.HARDWARE and most >= LEAST_CEILING * evidence.threads:
        return _maybe_limited(evidence, most)
    if judgement.verdict is ScalingVerdict.SLOWER and most >= SLOWER:
        return replace(judgement, verdict=ScalingVerdict.PLATEAUS)
    return judgement


def verdict_of_many(evidence: ScalingEvidence) -> tuple[ScalingVerdict, Doubt | None]:
    """Return the verdict of one function among hundreds, where the interval alone decides.

    It lies on one side of `SCALES`, or the verdict is open.  Where 95 % of intervals hold and the machine does not
    change, two measurements of the same function contradict each other in one of 800 at most: both intervals must miss,
    on different sides.  `judge` says more, and errs more often.  Of threads that were hardly ever undisturbed,
    disturbed calls tell a loss, never that there is none: neighbours hide contention.
    """
    span = evidence.of_ceiling
    if not evidence.enough or span is None:
        below = evidence.disturbed is not None and evidence.disturbed.hi <= SURELY_DISTURBED
        return (_limited_verdict(evidence), None) if below else (ScalingVerdict.UNSURE, Doubt.FEW_CLEAN)
    if span.lo >= SCALES:
        return (ScalingVerdict.UNSURE, Doubt.ONE_CORE) if evidence.one_core else (ScalingVerdict.SCALES, None)
    if span.hi >= SCALES:
        return ScalingVerdict.UNSURE, Doubt.WIDE
    return _limited_verdict(evidence), None


def more_rounds_may_decide(evidence: ScalingEvidence, doubt: Doubt | None) -> bool:
    """Return True if the verdict is open because its interval is too wide for any estimate to decide."""
    span = evidence.of_ceiling
    return doubt in {Doubt.WIDE, Doubt.NEAR} and span is not None and (
        span.lo < SCALES - NEAR or span.hi > SCALES + NEAR)


def gain(rate: float, lost: float, full: float) -> float:
    """Return the share of the loss from `full` to `lost` that a rate gains back; 0.0 without a loss."""
    return (rate - lost) / (full - lost) if full > lost else 0.0


def counts_explain(evidence: ScalingEvidence) -> tuple[float, float]:
    """Return the share of the loss that everything immortal gains, and the most of it that its interval allows.

    Both are 1.0 if it was not measured.
    """
    if evidence.immortal is None or evidence.of_ceiling is None:
        return 1.0, 1.0
    threads = evidence.of_ceiling.ratio      # of the ceiling, which is 1
    estimate, most = (min(max(gain(threads * times, threads, 1.0), 0.0), 1.0)
                      for times in (evidence.immortal.ratio, evidence.immortal.hi))
    return estimate, most


def locks_left(locks: Iterable[ContendedLock], least: float, on_cores: float) -> list[ContendedLock]:
    """Return the locks that may be in the way where nothing else is.

    Args:
        locks: Those seen held.
        least: Share of samples, on idle cores.
        on_cores: Share of the time in which threads had cores: no thread holds a lock in samples of the rest.
    """
    return [each for each in locks if each.is_held(least * on_cores)]


def is_lost_to_yielding_lock(evidence: ScalingEvidence) -> bool:
    """Return True if a lock is in the way whose waiters are never undisturbed on a busy machine.

    Neighbours hide contention, so disturbed calls say at most how much threads reach of the ceiling.
    """
    locked = any(each.held >= MUCH_LOCKED for each in evidence.locks)
    below = evidence.disturbed is not None and evidence.disturbed.hi <= SURELY_DISTURBED
    counts = evidence.disturbed_immortal is not None and evidence.disturbed_immortal.ratio >= CONTRAST
    return locked and below and not counts


def _verdict(evidence: ScalingEvidence) -> tuple[ScalingVerdict, Doubt | None]:
    span = evidence.of_ceiling
    if not evidence.enough or span is None:
        return (ScalingVerdict.PLATEAUS, None) if is_lost_to_yielding_lock(evidence) else (
            ScalingVerdict.UNSURE, Doubt.FEW_CLEAN)
    if span.lo >= SCALES or (span.ratio >= SCALES + NEAR and span.lo >= SCALES - NEAR):
        gained = evidence.immortal
        if evidence.one_core:
            return ScalingVerdict.UNSURE, Doubt.ONE_CORE
        # Where the estimate alone says that it scales, a clear gain leaves it open: the ceiling may be underrated.
        if (span.lo < SCALES and span.ratio < SURELY_NOT and gained is not None and gained.ratio >= CONTRAST
                and gained.lo > 1):
            return ScalingVerdict.UNSURE, Doubt.NEAR
        surprising = gained is not None and gained.ratio >= SURPRISING and gained.lo >= CONTRAST
        return (ScalingVerdict.UNSURE, Doubt.SURPRISE) if surprising else (ScalingVerdict.SCALES, None)
    if span.hi < SCALES or (span.ratio <= SCALES - NEAR and span.hi <= SCALES + NEAR):
        return _limited_verdict(evidence), None
    near = span.lo >= SURELY_SCALES and span.hi <= SURELY_NOT
    return ScalingVerdict.UNSURE, Doubt.NEAR if near else Doubt.WIDE


def _ceiling_is_low(evidence: ScalingEvidence) -> bool:
    """Return True if, surely, neither processes nor threads reach what idle cores give."""
    least = LEAST_CEILING * evidence.threads
    # Both: one slow moment of the processes is no low ceiling.
    return all(span is not None and span.hi < least for span in (evidence.ceiling, evidence.speedup))


def _maybe_limited(evidence: ScalingEvidence, later: float = 0.0) -> Judgement:
    """Return the judgement of threads that scale where a low ceiling is not shown; near to one, it is open.

    Args:
        evidence: Of the function.
        later: The largest speed-up of later looks.
    """
    least = NEARLY_LOW * evidence.threads
    low = later < least and all(
        span is not None and span.ratio < least for span in (evidence.ceiling, evidence.speedup))
    return Judgement(verdict=ScalingVerdict.SCALES, obstacle=Obstacle.UNKNOWN if low else Obstacle.NONE,
                     doubt=Doubt.HARDWARE if low else None)


def _limited_verdict(evidence: ScalingEvidence) -> ScalingVerdict:
    # One thread has a whole core, also where several share one.
    slower = evidence.speedup is not None and evidence.speedup.hi < SLOWER and not evidence.one_core
    return ScalingVerdict.SLOWER if slower else ScalingVerdict.PLATEAUS


def _obstacle(evidence: ScalingEvidence) -> tuple[Obstacle, Doubt | None]:
    lock = any(each.is_held(LOCKED) for each in evidence.locks)
    if evidence.of_ceiling is None:
        return (Obstacle.LOCK, None) if lock else (Obstacle.UNKNOWN, Doubt.FEW_CLEAN)
    threads, without = evidence.of_ceiling.ratio, evidence.no_collector      # of the ceiling, which is 1
    beside = (evidence.refused is not None if evidence.immortal_beside is None else
              evidence.immortal_beside <= BESIDE_COLLECTOR)
    if (evidence.collected and without is not None and without.ratio >= CONTRAST and without.lo > 1
            and gain(threads * without.ratio, threads, 1.0) >= EXPLAINS and beside):
        return Obstacle.COLLECTOR, None
    if evidence.immortal is None:
        return (Obstacle.LOCK, None) if lock else (Obstacle.UNKNOWN, evidence.refused or Doubt.FEW_CLEAN)
    gained, at_most = counts_explain(evidence)
    enough = COUNTS_GAIN_BESIDE_LOCK if lock else COUNTS_GAIN
    if evidence.immortal.ratio >= CONTRAST and gained >= enough:
        return (Obstacle.COUNTS, None) if evidence.immortal.lo > 1 else (Obstacle.UNKNOWN, Doubt.CONTRAST)
    if lock:
        return Obstacle.LOCK, None
    doubt = None
    if at_most >= HALF_EXPLAINED or (evidence.immortal.hi >= ACQUITTED and at_most >= COUNTS_GAIN):
        doubt = Doubt.CONTRAST
    elif evidence.collected and (without is None or gain(threads * without.hi, threads, 1.0) >= EXPLAINS):
        doubt = Doubt.COLLECTOR
    return (Obstacle.UNKNOWN, doubt) if doubt else _by_exclusion(evidence)


def _by_exclusion(evidence: ScalingEvidence) -> tuple[Obstacle, Doubt | None]:
    """Return the obstacle where neither counts nor the collector explain the loss."""
    if evidence.one_core:      # which hides what counts cost
        return Obstacle.UNKNOWN, Doubt.ONE_CORE
    if not locks_left(evidence.locks, HARDLY_LOCKED, evidence.on_cores):
        return Obstacle.NOT_YOUR_OBJECTS, None
    # Beside neighbours, who holds a lock may have no core: that it is seen held says less.
    if evidence.on_cores < QUIET:
        return Obstacle.UNKNOWN, Doubt.YIELDING
    if locks_left(evidence.locks, SELDOM_LOCKED, evidence.on_cores):
        return Obstacle.LOCK, None
    return Obstacle.UNKNOWN, Doubt.SELDOM
