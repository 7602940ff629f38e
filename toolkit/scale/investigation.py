"""Investigate one function on one build: whether it scales, and if not, which objects are in the way."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.child.names import LOG_HANDLER, UNNAMED
from gilscope.toolkit.scale.counts_search import CountsSearch
from gilscope.toolkit.scale.judgement import (
    HARDLY_LOCKED,
    LOCKED,
    LOST,
    MUCH_LOCKED,
    SELDOM_LOCKED,
    ContendedLock,
    Doubt,
    Judgement,
    LaterLook,
    Obstacle,
    ScalingEvidence,
    ScalingVerdict,
    after_later_looks,
    judge,
    locks_left,
    more_rounds_may_decide,
)
from gilscope.toolkit.scale.object_sampler import ObjectSampler, contended_locks
from gilscope.toolkit.scale.repair_trials import NOT_BEGUN, RepairTrial, try_copies
from gilscope.toolkit.scale.repairs import COPIED, repairs
from gilscope.toolkit.scale.scaling_rounds import (
    IMMORTAL,
    NO_COLLECTOR,
    ONE,
    PROCESSES,
    THREADS,
    TRIES,
    CpuPlacement,
    ScalingRounds,
    compared_modes,
)
from gilscope.toolkit.scale.zygote_process import CallMode, LoadedFunction, UnscalableFunctionError
from gilscope.toolkit.units import list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.scale.judgement import Span
    from gilscope.toolkit.scale.scaling_rounds import RoundCalls
    from gilscope.toolkit.scale.zygote_process import SampledObject, ZygoteProcess

    Clock = Callable[[], float]

ROUNDS, MORE_ROUNDS, MOST_ROUNDS = 4, 2, 12
WIDE_ROUNDS = 24          # the most where only these may decide
VERDICT_SECONDS = 40.0    # after these no more rounds for an unsure verdict
LONG_CALL = 0.02          # seconds; with such a one, each limit is twice as long
CAUSE_ROUNDS = 3
CAUSE_LOOKS = 4           # at the cause, as long as an interval leaves it open
OPEN_CAUSES = frozenset({Doubt.CONTRAST, Doubt.COLLECTOR})     # which more rounds may tell
LOCK_DOUBTS = frozenset({Doubt.YIELDING, Doubt.SELDOM})
LATER_LOOKS, REST = 2, 0.7        # how often it is looked at again, and seconds before each: a host may move the cores
SEARCH_SECONDS = 30.0     # for the objects whose counts are in the way
LEAST_HANDOFFS = 5        # that deciles are of
TRIAL_SECONDS = 45.0      # after these no repair is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffTimes:
    """How long a cache line took from the CPU of one thread to that of another, in nanoseconds."""

    median: float      # of the measurements
    lo: float          # their first decile
    hi: float          # their last


@dataclass(frozen=True, slots=True, kw_only=True)
class FarMeasurements:
    """Measurements that do not count: in those moments the CPUs were farther apart."""

    count: int
    handoff: float              # nanoseconds that a cache line took, median
    of_ceiling: Span | None     # threads against processes, both on far CPUs; None: too few


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingInvestigation:
    """The findings about one function on one build; rates are calls a second."""

    threads: int
    loaded: LoadedFunction
    rates: dict[str, float]                 # of all threads together, by mode
    evidence: ScalingEvidence
    judgement: Judgement
    objects: tuple[BlamedObject, ...]       # in the way
    also: tuple[BlamedObject, ...]          # locks that were seen held beside them
    explained: float | None                 # share of the loss that the objects explain; None: not measured
    without: float | None                   # throughput with the objects out of the way, as a share of the ceiling
    trial: RepairTrial | None               # of a copy in each thread; None: a copy is no repair
    queued_share: float                     # of the threads' time, they waited for a core
    switches: float                         # voluntary ones a second and thread
    measurements: int
    set_aside: int                          # of these, on hyperthreads of one core while others were not
    handoff: HandoffTimes | None            # of those that count; None: too few
    far: FarMeasurements | None             # None: there are none, or they count
    seconds: float

    @property
    def repairable(self) -> tuple[BlamedObject, ...]:
        """Return the objects that repairs are for: locks beside them only if something is known to be in the way."""
        return (*self.objects, *self.also) if self.objects or self.judgement.verdict in LOST else ()


def investigate(
    process: ZygoteProcess, loaded: LoadedFunction, threads: int, *, clock: Clock = time.monotonic,
    rest: Callable[[float], object] = time.sleep, say: Callable[[str], object] = lambda _: None,
) -> ScalingInvestigation:
    """Measure until verdict and cause are clear, or it is clear that they are not.

    Args:
        process: The zygote.
        loaded: Its function.
        threads: Their number.
        clock: Tells seconds.
        rest: Waits so many seconds.
        say: Is told what is known, and what comes next.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    return _Investigator(process, loaded, threads, clock, rest, say).run()


def take_a_look(process: ZygoteProcess, threads: int) -> tuple[ScalingEvidence, float]:
    """Measure a few rounds of threads, processes and one thread, for a verdict without its cause.

    Returns:
        The evidence, and the seconds of a call in one thread; 0.0 if no such call was undisturbed.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    rounds = ScalingRounds(process, compared_modes(threads))
    rounds.take(ROUNDS)
    evidence = evidence_of(rounds, threads)
    if more_rounds_may_decide(evidence, judge(evidence).doubt):
        rounds.take(ROUNDS)
        evidence = evidence_of(rounds, threads)
    rate = rounds.total(ONE).rate
    return evidence, 1 / rate if rate else 0.0


def evidence_of(rounds: RoundCalls, threads: int) -> ScalingEvidence:
    """Return the evidence of rounds of `compared_modes`."""
    compared = (ONE, THREADS, PROCESSES)
    return ScalingEvidence(
        threads=threads, clean_seconds=rounds.clean_seconds(compared), enough=rounds.enough(compared),
        of_ceiling=rounds.span(PROCESSES, THREADS), speedup=rounds.span(ONE, THREADS),
        ceiling=rounds.span(ONE, PROCESSES), one_core=rounds.on_one_core,
        far=rounds.placement is CpuPlacement.FAR)


def _far_measurements(rounds: RoundCalls) -> FarMeasurements | None:
    far = rounds.far()
    handoffs = far.handoffs()
    return FarMeasurements(
        count=len(handoffs), handoff=median(handoffs),
        of_ceiling=far.span(PROCESSES, THREADS) if far.enough((PROCESSES, THREADS)) else None) if handoffs else None


def _handoff_times(nanoseconds: Sequence[float]) -> HandoffTimes | None:
    if len(nanoseconds) < LEAST_HANDOFFS:
        return None
    lo, *_, hi = quantiles(nanoseconds, n=10, method="inclusive")
    return HandoffTimes(median=median(nanoseconds), lo=lo, hi=hi)


class _Investigator:
    def __init__(
        self, process: ZygoteProcess, loaded: LoadedFunction, threads: int, clock: Clock,
        rest: Callable[[float], object], say: Callable[[str], object],
    ) -> None:
        self._process = process
        self._rest = rest
        self._say = say
        self._loaded = loaded
        self._threads = threads
        self._clock = clock
        self._began = self._pass_began = clock()
        self._measured_before = process.measurements, process.on_one_core
        self._moved = False      # the CPUs turned out to have been far apart: they are nearer in other moments
        self._patience = 2.0 if loaded.seconds_per_call >= LONG_CALL else 1.0
        self._refused = Doubt.REFUSED if loaded.refused else None
        self._modes = compared_modes(threads)
        self._objects: tuple[BlamedObject, ...] = ()
        self._also: tuple[BlamedObject, ...] = ()
        self._explained: float | None = None
        self._without: float | None = None
        self._trial: RepairTrial | None = None
        self._placement = CpuPlacement.NEAR      # of what verdict and cause are of

    def run(self) -> ScalingInvestigation:
        answer = self._investigate()
        if self._moved:
            self._objects = self._also = ()
            self._explained = self._without = self._trial = None
            self._pass_began = self._clock()
            answer = self._investigate()
        return answer

    def _investigate(self) -> ScalingInvestigation:
        if not self._refused and not self._same_results():
            self._refused = Doubt.RESULTS
        if not self._refused:
            self._modes[IMMORTAL] = CallMode(threads=self._threads, everything=True)
        rounds = ScalingRounds(self._process, {**self._modes, NO_COLLECTOR: CallMode(
            threads=self._threads, collector=False)})
        rounds.take(ROUNDS, list(self._modes))
        evidence = self._evidence(rounds)
        judgement = judge(evidence)
        self._say_so_far(evidence, judgement)
        taken = ROUNDS
        while ((judgement.verdict is ScalingVerdict.UNSURE or evidence.far)
               and taken < (WIDE_ROUNDS if more_rounds_may_decide(evidence, judgement.doubt) else MOST_ROUNDS)
               and self._clock() - self._pass_began < VERDICT_SECONDS * self._patience):
            rounds.take(MORE_ROUNDS, list(self._modes))
            evidence = self._evidence(rounds)
            judgement = judge(evidence)
            taken += MORE_ROUNDS
        self._placement = rounds.placement
        if taken > ROUNDS:
            self._say_so_far(evidence, judgement)
        if judgement.verdict in LOST or judgement.obstacle is Obstacle.COUNTS:
            evidence, judgement = self._find_cause(rounds)
        elif judgement.verdict is ScalingVerdict.UNSURE:
            evidence, judgement = self._look_for_locks(rounds, evidence)
        if judgement.verdict is not ScalingVerdict.UNSURE and evidence.enough:
            evidence = replace(evidence, later=tuple(self._later_looks(evidence)))
            judgement = after_later_looks(judgement, evidence)
        total = rounds.total(THREADS)
        placement = rounds.placement
        self._moved = placement is CpuPlacement.FAR and not evidence.far
        measurements, on_one_core = self._measured_before
        return ScalingInvestigation(
            threads=self._threads, loaded=self._loaded,
            rates={name: rounds.total(name).rate for name in self._modes}, evidence=evidence, judgement=judgement,
            objects=self._objects, also=self._also, explained=self._explained, without=self._without,
            trial=self._trial, queued_share=total.queued_share,
            switches=total.switches / total.lasted * 1e9 if total.lasted else 0.0,
            measurements=self._process.measurements - measurements,
            set_aside=0 if evidence.one_core else self._process.on_one_core - on_one_core,
            handoff=_handoff_times([each for each in rounds.handoffs()
                                    if placement is not CpuPlacement.NEAR or each <= rounds.near]),
            far=_far_measurements(rounds) if placement is CpuPlacement.NEAR else None,
            seconds=self._clock() - self._began)

    def _say_so_far(self, evidence: ScalingEvidence, judgement: Judgement) -> None:
        share = evidence.of_ceiling
        self._say(f"{judgement.verdict.value}{f', {share.ratio:.2f} of the ceiling' if share else ''} so far")

    def _later_looks(self, before: ScalingEvidence) -> Iterator[LaterLook]:
        """Yield the later looks that have enough clean time, with the CPUs where they were before."""
        for _ in range(LATER_LOOKS):
            self._rest(REST)
            rounds = ScalingRounds(self._process, compared_modes(self._threads))
            for _ in range(TRIES):
                rounds.take(CAUSE_ROUNDS)
                seen = evidence_of(rounds, self._threads)
                if alike := seen.one_core == before.one_core and seen.far == before.far:
                    break
            if seen.enough and alike and seen.of_ceiling is not None and seen.speedup is not None:
                yield LaterLook(of_ceiling=seen.of_ceiling, speedup=seen.speedup)

    def _same_results(self) -> bool:
        """Return True if results do not change with everything immortal, or change by themselves."""
        plain = self._process.results(immortal=False)
        if plain != self._process.results(immortal=False):
            return True
        try:
            return plain == self._process.results(immortal=True)
        except UnscalableFunctionError:      # it raises then: it looks at counts, or C code does
            return False

    def _evidence(self, rounds: ScalingRounds) -> ScalingEvidence:
        return replace(evidence_of(rounds, self._threads), refused=self._refused,
                       immortal=None if self._refused else rounds.span(THREADS, IMMORTAL))

    def _look_for_locks(self, rounds: ScalingRounds, evidence: ScalingEvidence) -> tuple[ScalingEvidence, Judgement]:
        """See whether a lock explains why the verdict is open: waiters yield their cores, and are never undisturbed."""
        seen = self._sampler(rounds).sample()
        locks = tuple(each for each in contended_locks(seen) if each.held >= LOCKED)
        if rounds.enough([ONE, PROCESSES]) and not rounds.enough([THREADS]):
            evidence = replace(evidence, locks=locks, disturbed=rounds.span_on_cores(PROCESSES, THREADS),
                               disturbed_immortal=rounds.span_on_cores(THREADS, IMMORTAL)
                               if IMMORTAL in self._modes else None)
        judgement = judge(evidence)
        if judgement.obstacle is Obstacle.LOCK:
            self._objects = self._locks([each for each in locks if each.held >= MUCH_LOCKED])
        else:
            self._also = self._locks(locks)
            if locks and evidence.disturbed is not None:
                judgement = replace(judgement, doubt=Doubt.YIELDING)
        return evidence, judgement

    def _sampler(self, rounds: ScalingRounds) -> ObjectSampler:
        return ObjectSampler(self._process, self._threads, 1 - rounds.total(THREADS).queued_share)

    def _find_cause(self, rounds: ScalingRounds) -> tuple[ScalingEvidence, Judgement]:
        self._say("looking for what is in the way")
        sampler = self._sampler(rounds)
        seen = sampler.sample()
        locks = self._known_locks(contended_locks(seen))
        evidence = self._measure_cause(rounds, locks, sampler.on_cores)
        judgement = judge(evidence)
        held = [each for each in locks if each.is_held(LOCKED)]
        if judgement.obstacle is Obstacle.LOCK:
            held = held or locks_left(locks, SELDOM_LOCKED, sampler.on_cores)
            self._objects = self._locks(held)
            self._try_copies(judgement.obstacle, [each.number for each in held])
        elif judgement.obstacle is Obstacle.COUNTS and evidence.immortal is not None:
            self._also = self._locks(held)
            judgement = self._blame_counts(sampler, seen, evidence.immortal, judgement)
        elif judgement.verdict is ScalingVerdict.UNSURE:
            self._also = self._locks(held)
        elif judgement.doubt in LOCK_DOUBTS:
            self._also = self._locks(locks_left(locks, HARDLY_LOCKED, sampler.on_cores))
        return evidence, judgement

    def _measure_cause(
        self, rounds: ScalingRounds, locks: tuple[ContendedLock, ...], on_cores: float,
    ) -> ScalingEvidence:
        """Measure on, also without the collector, until the cause is clear, or it is clear that it is not."""
        compared = [name for name in self._modes if name != ONE] + [NO_COLLECTOR]
        for _ in range(CAUSE_LOOKS):
            rounds.take(CAUSE_ROUNDS, compared)
            beside = rounds.span(NO_COLLECTOR, IMMORTAL) if IMMORTAL in self._modes else None
            evidence = replace(
                self._evidence(rounds), locks=locks, no_collector=rounds.span(THREADS, NO_COLLECTOR),
                immortal_beside=beside.ratio if beside else None, collected=rounds.total(THREADS).collections > 0,
                on_cores=on_cores)
            judgement = judge(evidence)
            if (judgement.doubt not in OPEN_CAUSES and not evidence.far) or self._is_late():
                break
        self._placement = rounds.placement
        return self._without_collector_again(evidence) if judgement.obstacle is Obstacle.COLLECTOR else evidence

    def _without_collector_again(self, evidence: ScalingEvidence) -> ScalingEvidence:
        """Measure once more what blames the collector: the rounds that raised the suspicion may be chance."""
        rounds = ScalingRounds(self._process, {
            **{name: self._modes[name] for name in (THREADS, IMMORTAL) if name in self._modes},
            NO_COLLECTOR: CallMode(threads=self._threads, collector=False)})
        enough = rounds.take_enough(CAUSE_ROUNDS, self._placement)
        beside = rounds.span(NO_COLLECTOR, IMMORTAL) if IMMORTAL in self._modes else None
        return replace(evidence, no_collector=rounds.span(THREADS, NO_COLLECTOR) if enough else None,
                       immortal_beside=beside.ratio if beside else None)

    def _known_locks(self, locks: Sequence[ContendedLock]) -> tuple[ContendedLock, ...]:
        """Return the locks with the knowledge whether they have a name."""
        names = self._process.names([each.number for each in locks])
        return tuple(replace(each, named=name.kind != UNNAMED) for each, name in zip(locks, names, strict=True))

    def _locks(self, held: Sequence[ContendedLock]) -> tuple[BlamedObject, ...]:
        numbers = [each.number for each in held]
        return tuple(BlamedObject(name=name.name, kind=LOG_HANDLER if name.kind == LOG_HANDLER else "lock",
                                  type=name.type, argument=name.argument, held=each.held, places=places)
                     for each, name, places in zip(
                         held, self._process.names(numbers), self._process.places(numbers), strict=True))

    def _is_late(self) -> bool:
        return self._clock() - self._pass_began > TRIAL_SECONDS * self._patience

    def _try_copies(self, obstacle: Obstacle, numbers: Sequence[int]) -> None:
        """Try a copy in each thread where that is the repair."""
        if not self._objects or not COPIED.issuperset(repairs(obstacle, self._objects)):
            return
        if self._is_late():
            self._trial = NOT_BEGUN
            return
        self._say(f"{obstacle.value} of {list_text(one.name for one in self._objects)}; trying a copy in each thread")
        self._trial = try_copies(
            self._process, self._threads, list(zip(numbers, self._process.names(numbers), strict=True)),
            placement=self._placement)

    def _try_copies_of_globals(self, suspects: Sequence[SampledObject]) -> None:
        """Try copies of what the program's own package holds, where no set of objects was found; keep what gains."""
        if self._is_late():
            return
        named = zip(suspects, self._process.names([each.number for each in suspects]), strict=True)
        own = [(each.number, name) for each, name in named if name.argument or (
            name.held is not None and name.held[0].partition(".")[0] == self._loaded.package)]
        if own:
            trial = try_copies(self._process, self._threads, own, placement=self._placement)
            self._trial = trial if trial and trial.gained else None

    def _blame_counts(
        self, sampler: ObjectSampler, seen: Sequence[SampledObject], immortal: Span, judgement: Judgement,
    ) -> Judgement:
        """Find the set of objects whose counts are in the way."""
        self._say("reference counts are in the way; searching for the objects")
        found = CountsSearch(self._process, self._modes, sampler, immortal, self._clock,
                             seconds=SEARCH_SECONDS * self._patience, placement=self._placement).find(seen)
        if isinstance(found, Doubt):
            self._try_copies_of_globals(sampler.suspects(seen))
            return replace(judgement, doubt=judgement.doubt or found)
        self._objects, self._explained, self._without = found.objects, found.explained, found.without
        self._try_copies(judgement.obstacle, found.numbers)
        return judgement
