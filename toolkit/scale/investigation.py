"""Investigate one function on one build: whether it scales, and if not, which objects are in the way."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.child.names import LOG_HANDLER
from gilscope.toolkit.scale.judgement import (
    CONTRAST,
    EXPLAINS,
    LOCKED,
    MUCH_LOCKED,
    ContendedLock,
    Doubt,
    Judgement,
    LaterLook,
    Obstacle,
    ScalingEvidence,
    ScalingVerdict,
    gain,
    judge,
    lasting,
    limited,
    seldom_locked,
)
from gilscope.toolkit.scale.repair_trials import NO_TIME, RepairTrial, try_copies
from gilscope.toolkit.scale.repairs import COPIED, repairs
from gilscope.toolkit.scale.scaling_rounds import ScalingRounds
from gilscope.toolkit.scale.search import ENOUGH, SearchLimitError, smallest_set
from gilscope.toolkit.scale.throughput import pooled
from gilscope.toolkit.scale.zygote_process import CLOSE_PERIOD, CallMode, LoadedFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.scale.judgement import Span
    from gilscope.toolkit.scale.scaling_rounds import RoundCalls
    from gilscope.toolkit.scale.throughput import CleanCalls
    from gilscope.toolkit.scale.zygote_process import (
        ProgramObject,
        SampledObject,
        ZygoteProcess,
    )

    Clock = Callable[[], float]

ROUNDS, MORE_ROUNDS, MOST_ROUNDS = 4, 2, 12
VERDICT_SECONDS = 40.0    # after these no more rounds for an unsure verdict: the machine is too busy
CAUSE_ROUNDS = 3
LATER_LOOKS, REST = 2, 0.7        # how often it is looked at again, and seconds before each: a host may move the cores
LOOKS = 3                 # of the sampler at all objects: a busy machine may hide one
MOVED = 0.02              # share of looks in which the count of a suspect had moved, of those while threads had cores
LEAST_MOVED = 0.004       # of all looks
LONGEST_LOOK = 4.0        # times the usual one, on a busy machine
SEARCH_SECONDS = 30.0
SEARCHES = 2              # of which the last begins anew: one measurement that errs misleads a whole search
TRIAL_SECONDS = 45.0      # after these no repair is tried: the machine is too busy
MOST_ALONE = 5            # objects that are named one by one; more are named by their owners
MOST_NARROWED = 40        # with more suspects of the owners that are needed, no small set of them is searched for
CLOSE_CALL = 0.25         # a share of the gain so near to the threshold is measured again
SET = "set"
ONE, THREADS, PROCESSES, IMMORTAL, NO_COLLECTOR = "one", "threads", "processes", "immortal", "no collector"


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
    trials: tuple[RepairTrial, ...]         # of a copy in each thread; empty if a copy is no repair
    queued_share: float                     # of the threads' time, they waited for a core
    switches: float                         # voluntary ones a second and thread
    measurements: int
    seconds: float


def investigate(
    process: ZygoteProcess, loaded: LoadedFunction, threads: int, *, clock: Clock = time.monotonic,
    rest: Callable[[float], object] = time.sleep,
) -> ScalingInvestigation:
    """Measure until verdict and cause are clear, or it is clear that they are not.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    return _Investigator(process, loaded, threads, clock, rest).run()


def take_a_look(process: ZygoteProcess, threads: int, count: int = ROUNDS) -> tuple[ScalingEvidence, float]:
    """Measure `count` rounds of threads, processes and one thread, for a verdict without its cause.

    Returns:
        The evidence, and the seconds of a call in one thread; 0.0 if no such call was undisturbed.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    rounds = ScalingRounds(process, compared_modes(threads))
    rounds.take(count)
    rate = rounds.total(ONE).rate
    return evidence_of(rounds, threads), 1 / rate if rate else 0.0


def compared_modes(threads: int) -> dict[str, CallMode]:
    """Return the modes whose rates decide the verdict, by name."""
    return {ONE: CallMode(threads=1), THREADS: CallMode(threads=threads),
            PROCESSES: CallMode(threads=threads, processes=True)}


def evidence_of(rounds: RoundCalls, threads: int) -> ScalingEvidence:
    """Return the evidence of rounds of `compared_modes`."""
    compared = (ONE, THREADS, PROCESSES)
    return ScalingEvidence(
        threads=threads, clean_seconds=rounds.clean_seconds(compared), enough=rounds.enough(compared),
        of_ceiling=rounds.span(PROCESSES, THREADS), speedup=rounds.span(ONE, THREADS),
        ceiling=rounds.span(ONE, PROCESSES))


class _Investigator:
    def __init__(
        self, process: ZygoteProcess, loaded: LoadedFunction, threads: int, clock: Clock,
        rest: Callable[[float], object],
    ) -> None:
        self._process = process
        self._rest = rest
        self._loaded = loaded
        self._threads = threads
        self._clock = clock
        self._began = clock()
        self._refused = Doubt.REFUSED if loaded.refused else None
        self._modes = compared_modes(threads)
        self._objects: tuple[BlamedObject, ...] = ()
        self._also: tuple[BlamedObject, ...] = ()
        self._explained: float | None = None
        self._without: float | None = None
        self._trials: tuple[RepairTrial, ...] = ()
        self._on_cores = 1.0      # share of the threads' time

    def run(self) -> ScalingInvestigation:
        if not self._refused and not self._same_results():
            self._refused = Doubt.RESULTS
        if not self._refused:
            self._modes[IMMORTAL] = CallMode(threads=self._threads, everything=True)
        rounds = ScalingRounds(self._process, {**self._modes, NO_COLLECTOR: CallMode(
            threads=self._threads, collector=False)})
        rounds.take(ROUNDS, list(self._modes))
        evidence = self._evidence(rounds)
        taken = ROUNDS
        while (judge(evidence).verdict is ScalingVerdict.UNSURE and taken < MOST_ROUNDS
               and self._clock() - self._began < VERDICT_SECONDS):
            rounds.take(MORE_ROUNDS, list(self._modes))
            evidence = self._evidence(rounds)
            taken += MORE_ROUNDS
        judgement = judge(evidence)
        if limited(evidence):
            evidence, judgement = self._find_cause(rounds)
        elif judgement.verdict is ScalingVerdict.UNSURE:
            evidence, judgement = self._look_for_locks(rounds, evidence)
        if judgement.verdict is not ScalingVerdict.UNSURE and evidence.enough:
            evidence = replace(evidence, later=tuple(self._later_looks()))
            judgement = lasting(judgement, evidence)
        total = rounds.total(THREADS)
        return ScalingInvestigation(
            threads=self._threads, loaded=self._loaded,
            rates={name: rounds.total(name).rate for name in self._modes}, evidence=evidence, judgement=judgement,
            objects=self._objects, also=self._also, explained=self._explained, without=self._without,
            trials=self._trials, queued_share=total.queued_share,
            switches=total.switches / total.lasted * 1e9 if total.lasted else 0.0,
            measurements=self._process.measurements, seconds=self._clock() - self._began)

    def _later_looks(self) -> Iterator[LaterLook]:
        """Yield the later looks that have enough clean time."""
        for _ in range(LATER_LOOKS):
            self._rest(REST)
            seen, _ = take_a_look(self._process, self._threads, CAUSE_ROUNDS)
            if seen.enough and seen.of_ceiling is not None and seen.speedup is not None:
                yield LaterLook(of_ceiling=seen.of_ceiling, speedup=seen.speedup)

    def _same_results(self) -> bool:
        """Return True if results do not change with everything immortal, or change by themselves."""
        plain = self._process.results(immortal=False)
        if plain != self._process.results(immortal=False):
            return True
        return plain == self._process.results(immortal=True)

    def _evidence(self, rounds: ScalingRounds) -> ScalingEvidence:
        return replace(evidence_of(rounds, self._threads), refused=self._refused,
                       immortal=None if self._refused else rounds.span(THREADS, IMMORTAL))

    def _look_for_locks(self, rounds: ScalingRounds, evidence: ScalingEvidence) -> tuple[ScalingEvidence, Judgement]:
        """See whether a lock explains why the verdict is open: waiters yield their cores, and are never undisturbed."""
        locks = tuple(each for each in _contended(self._sampled(rounds)) if each.held >= LOCKED)
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

    def _find_cause(self, rounds: ScalingRounds) -> tuple[ScalingEvidence, Judgement]:
        rounds.take(CAUSE_ROUNDS, [name for name in self._modes if name != ONE] + [NO_COLLECTOR])
        seen = self._sampled(rounds)
        locks = _contended(seen)
        no_collector = rounds.span(THREADS, NO_COLLECTOR)
        beside = rounds.span(NO_COLLECTOR, IMMORTAL) if IMMORTAL in self._modes else None
        evidence = replace(
            self._evidence(rounds), locks=locks, no_collector=no_collector,
            immortal_beside=beside.ratio if beside else None, collected=rounds.total(THREADS).collections > 0,
            on_cores=self._on_cores)
        judgement = judge(evidence)
        if judgement.obstacle is Obstacle.COLLECTOR:
            evidence = self._without_collector_again(evidence)
            judgement = judge(evidence)
        held = [each for each in locks if each.held >= LOCKED]
        if judgement.obstacle is Obstacle.LOCK:
            self._objects = self._locks(held)
            self._try_copies(judgement.obstacle, [each.number for each in held])
        elif judgement.obstacle is Obstacle.COUNTS and evidence.immortal is not None:
            self._also = self._locks(held)
            judgement = self._blame_counts(rounds, seen, evidence.immortal, judgement)
        elif judgement.doubt is Doubt.YIELDING:
            self._also = self._locks([each for each in locks if each.held >= seldom_locked(self._on_cores)])
        return evidence, judgement

    def _without_collector_again(self, evidence: ScalingEvidence) -> ScalingEvidence:
        """Measure once more what blames the collector: the rounds that raised the suspicion may be chance."""
        rounds = ScalingRounds(self._process, {
            THREADS: self._modes[THREADS], IMMORTAL: self._modes[IMMORTAL],
            NO_COLLECTOR: CallMode(threads=self._threads, collector=False)})
        rounds.take(CAUSE_ROUNDS)
        beside = rounds.span(NO_COLLECTOR, IMMORTAL)
        return replace(evidence, no_collector=rounds.span(THREADS, NO_COLLECTOR),
                       immortal_beside=beside.ratio if beside else None)

    def _sampled(self, rounds: ScalingRounds) -> list[SampledObject]:
        """Return the objects whose counts moved, or that were locked, at a closer look."""
        self._on_cores = 1 - rounds.total(THREADS).queued_share
        longer = min(LONGEST_LOOK, 1 / max(self._on_cores, 0.01))
        numbers = {each.number for _ in range(LOOKS) for each in self._process.sample(self._threads, longer=longer)
                   if each.moved >= MOVED / 10 or each.locked}
        return self._process.sample(
            self._threads, sorted(numbers), CLOSE_PERIOD, longer=longer) if numbers else []

    def _suspects(self, seen: Sequence[SampledObject]) -> list[SampledObject]:
        """Return the objects whose counts moved often enough while the threads had cores, most often first."""
        least = max(LEAST_MOVED, MOVED * self._on_cores)
        return sorted((each for each in seen if each.moved >= least), key=lambda each: -each.moved)

    def _locks(self, held: Sequence[ContendedLock]) -> tuple[BlamedObject, ...]:
        numbers = [each.number for each in held]
        return tuple(BlamedObject(name=name.name, kind=LOG_HANDLER if name.kind == LOG_HANDLER else "lock",
                                  type=name.type, held=each.held, places=places)
                     for each, name, places in zip(
                         held, self._process.names(numbers), self._process.places(numbers), strict=True))

    def _try_copies(self, obstacle: Obstacle, numbers: Sequence[int]) -> None:
        """Try a copy in each thread where that is the repair."""
        if not self._objects or not COPIED.issuperset(repairs(obstacle, self._objects)):
            return
        self._trials = (NO_TIME,) if self._clock() - self._began > TRIAL_SECONDS else try_copies(
            self._process, self._threads, list(zip(numbers, self._process.names(numbers), strict=True)))

    def _try_copies_of_globals(self, suspects: Sequence[SampledObject]) -> None:
        """Try copies of what the program's own package holds, where no set of objects was found; keep what gains."""
        if self._clock() - self._began > TRIAL_SECONDS:
            return
        named = zip(suspects, self._process.names([each.number for each in suspects]), strict=True)
        own = [(each.number, name) for each, name in named if name.argument or (
            name.held is not None and name.held[0].partition(".")[0] == self._loaded.package)]
        if own:
            self._trials = tuple(each for each in try_copies(self._process, self._threads, own) if each.gained)

    def _blame_counts(
        self, rounds: ScalingRounds, seen: Sequence[SampledObject], immortal: Span, judgement: Judgement,
    ) -> Judgement:
        """Find the set of objects whose counts are in the way."""
        doubtful = replace(judgement, doubt=Doubt.SET)
        search = _CountSearch(self._process, self._threads, immortal, until=self._clock() + SEARCH_SECONDS,
                              clock=self._clock)
        suspects = self._suspects(seen)
        for _ in range(SEARCHES):
            found = self._searched(rounds, seen, suspects, search)
            if found is not None and self._confirmed(found[1]):
                break
            search.forget()
        else:
            self._try_copies_of_globals(suspects)
            return doubtful
        named, numbers = found
        lines = self._process.places([each.number for each in named])
        self._objects = tuple(replace(each.blamed, places=places) for each, places in zip(named, lines, strict=True))
        self._try_copies(judgement.obstacle, numbers)
        return judgement

    def _searched(
        self, rounds: ScalingRounds, seen: Sequence[SampledObject], suspects: list[SampledObject], search: _CountSearch,
    ) -> tuple[list[_NamedSuspect], list[int]] | None:
        """Return the objects that are needed, or their owners, and the numbers of all; None if there is no such set.

        Adds suspects that were missed.
        """
        groups = self._groups(suspects)
        try:
            places = smallest_set([group.numbers for group in groups], search.share_of)
            if places is None:      # some were missed
                again = self._sampled(rounds)
                suspects += _unknown(self._suspects(again), suspects)
                # Hundreds of objects of one owner move seldom each, and cost much together.
                suspects += _unknown(self._of_owners(groups, [*seen, *again]), suspects)
                groups = self._groups(suspects)
                places = smallest_set([group.numbers for group in groups], search.share_of)
        except SearchLimitError:      # all suspects may be enough, but which of them are needed is not known
            places = None
        return None if places is None else self._narrowed([groups[place] for place in places], search)

    def _of_owners(self, groups: Sequence[_OwnerGroup], seen: Sequence[SampledObject]) -> list[SampledObject]:
        """Return the objects whose counts moved at all and whose owner has a suspect."""
        owners = {group.owner for group in groups}
        names = self._process.names([each.number for each in seen])
        return [each for each, name in zip(seen, names, strict=True) if each.moved and name.owner in owners]

    def _groups(self, suspects: Sequence[SampledObject]) -> list[_OwnerGroup]:
        """Return the suspects by their owners, the likeliest owner first."""
        names = self._process.names([each.number for each in suspects])
        by_owner: dict[str, _OwnerGroup] = {}
        for each, name in zip(suspects, names, strict=True):
            if not name.owner.startswith("gilscope") and "gilscope." not in name.owner:
                by_owner.setdefault(name.owner, _OwnerGroup(owner=name.owner, numbers=[], names=[])).add(each, name)
        return list(by_owner.values())

    def _narrowed(
        self, chosen: Sequence[_OwnerGroup], search: _CountSearch,
    ) -> tuple[list[_NamedSuspect], list[int]]:
        """Return the objects of the owners that are needed, or the owners if many are, and the numbers of all."""
        members = [(number, name) for group in chosen for number, name in zip(group.numbers, group.names, strict=True)]
        if len(members) > MOST_NARROWED:
            return [group.named() for group in chosen], [number for number, _ in members]
        if len(members) > 1:
            try:
                places = smallest_set([[number] for number, _ in members], search.share_of, most=MOST_ALONE)
            except SearchLimitError:
                places = None
            if places is None:
                return [group.named() for group in chosen], [number for number, _ in members]
            members = [members[place] for place in places]
        return ([_NamedSuspect(number=number, blamed=BlamedObject(name=name.name, kind=name.kind, type=name.type))
                 for number, name in members], [number for number, _ in members])

    def _confirmed(self, numbers: Sequence[int]) -> bool:
        """Measure the set once more beside what it is compared with; return True if it explains most of the gain."""
        rounds = ScalingRounds(self._process, {
            THREADS: self._modes[THREADS], PROCESSES: self._modes[PROCESSES], IMMORTAL: self._modes[IMMORTAL],
            SET: CallMode(threads=self._threads, immortal=tuple(numbers))})
        rounds.take(CAUSE_ROUNDS)
        two, processes, full, some = (rounds.total(name).rate for name in (THREADS, PROCESSES, IMMORTAL, SET))
        better = rounds.span(THREADS, SET)
        if not two or not processes or some / two < CONTRAST or better is None or better.lo <= 1:
            return False
        self._explained = min(1.0, gain(some, two, processes))
        self._without = some / processes
        return gain(some, two, full) >= EXPLAINS


def _unknown(found: Sequence[SampledObject], known: Sequence[SampledObject]) -> list[SampledObject]:
    """Return the objects that are not known, each once."""
    numbers = {each.number for each in known}
    return [*{each.number: each for each in found if each.number not in numbers}.values()]


def _contended(seen: Sequence[SampledObject]) -> tuple[ContendedLock, ...]:
    """Return the locks that were seen held, most often first."""
    return tuple(ContendedLock(number=each.number, held=each.locked)
                 for each in sorted(seen, key=lambda each: -each.locked) if each.locked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedSuspect:
    """An object to blame, or the first one of its owner's, with its number."""

    number: int
    blamed: BlamedObject


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnerGroup:
    """Suspects of one owner, the likeliest first."""

    owner: str
    numbers: list[int]
    names: list[ProgramObject]

    def add(self, suspect: SampledObject, name: ProgramObject) -> None:
        self.numbers.append(suspect.number)
        self.names.append(name)

    def named(self) -> _NamedSuspect:
        place = next((place for place, each in enumerate(self.names) if each.name == self.owner), 0)
        first = self.names[place]
        return _NamedSuspect(number=self.numbers[place], blamed=BlamedObject(
            name=self.owner if len(self.names) > 1 else first.name, kind=first.kind, type=first.type,
            count=len(self.names)))


class _CountSearch:
    """Measures which share of the gain of everything immortal a set of objects has."""

    def __init__(self, process: ZygoteProcess, threads: int, immortal: Span, *, until: float, clock: Clock) -> None:
        self._process = process
        self._all = CallMode(threads=threads, everything=True)
        self._threads = threads
        self._floor = 1 / immortal.ratio      # the rate of threads as they are, in that of everything immortal
        self._until = until
        self._clock = clock
        self._known: dict[tuple[int, ...], float] = {}

    def share_of(self, numbers: Sequence[int]) -> float:
        """Return the share, against everything immortal in the same moments.

        Raises:
            SearchLimitError: The time is over.
        """
        key = tuple(sorted(numbers))
        if key not in self._known:
            if self._clock() > self._until:
                raise SearchLimitError
            self._known[key] = self._measured(key)
        return self._known[key]

    def forget(self) -> None:
        """Measure again what was known."""
        self._known.clear()

    def _measured(self, numbers: tuple[int, ...]) -> float:
        some: list[CleanCalls] = []
        full: list[CleanCalls] = []
        share = 0.0
        for _ in range(2):
            for _ in range(2):
                some.append(self._process.measure_cleanly(CallMode(threads=self._threads, immortal=numbers)))
                full.append(self._process.measure_cleanly(self._all))
            reference = pooled(full).rate
            share = gain(pooled(some).rate / reference, self._floor, 1.0) if reference else 0.0
            if abs(share - ENOUGH) > CLOSE_CALL:
                break
        return share
