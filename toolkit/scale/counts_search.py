"""Search for the objects whose reference counts are in the way: by making some immortal, beside all of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.judgement import CONTRAST, EXPLAINS, Doubt, gain
from gilscope.toolkit.scale.scaling_rounds import (
    IMMORTAL,
    PROCESSES,
    THREADS,
    TRIES,
    CpuPlacement,
    ScalingRounds,
    counts,
)
from gilscope.toolkit.scale.search import ENOUGH, SearchLimitError, smallest_set
from gilscope.toolkit.scale.throughput import pooled
from gilscope.toolkit.scale.zygote_process import CallMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.scale.judgement import Span
    from gilscope.toolkit.scale.object_sampler import ObjectSampler
    from gilscope.toolkit.scale.throughput import CleanCalls
    from gilscope.toolkit.scale.zygote_process import ProgramObject, SampledObject, ZygoteProcess

SEARCHES = 2              # of which the last begins anew: one measurement that errs misleads a whole search
MOST_ALONE = 5            # objects that are named one by one; more are named by their owners
MOST_NARROWED = 40        # with more suspects of the owners that are needed, no small set of them is searched for
CLOSE_CALL = 0.2          # a share of the gain so near to its threshold is measured again
PAIRS = 2                 # of measurements of a set and of everything immortal, at a time
CONFIRMING_ROUNDS = 3
SET = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSet:
    """The objects in the way, and what making them immortal gains."""

    objects: tuple[BlamedObject, ...]     # or their owners
    numbers: tuple[int, ...]              # of all objects
    explained: float                      # share of the loss that they explain
    without: float                        # throughput with them out of the way, as a share of the ceiling


class CountsSearch:
    """Finds the set of objects that gains most of what making everything immortal gains."""

    def __init__(self, process: ZygoteProcess, modes: Mapping[str, CallMode], sampler: ObjectSampler, immortal: Span,
                 clock: Callable[[], float], *, seconds: float, placement: CpuPlacement) -> None:
        """Search nothing yet.

        Args:
            process: The zygote.
            modes: THREADS, PROCESSES and IMMORTAL.
            sampler: Samples again where suspects were missed.
            immortal: The rate of threads with everything immortal, in theirs without.
            clock: Tells seconds.
            seconds: After these, no further set is measured.
            placement: Where the CPUs were when `immortal` was measured; see `ScalingRounds.take_enough`.
        """
        self._process = process
        self._modes = modes
        self._sampler = sampler
        self._placement = placement
        self._shares = _MeasuredShares(process, modes, immortal, until=clock() + seconds, clock=clock,
                                       placement=placement)

    def find(self, seen: Sequence[SampledObject]) -> FoundSet | Doubt:
        """Return the set, or why there is none.

        Args:
            seen: Sampled objects.
        """
        suspects = self._sampler.suspects(seen)
        for _ in range(SEARCHES):
            self._shares.forget()
            found = self._search(seen, suspects)
            if found is not None and (confirmed := self._confirm(*found)):
                return confirmed
        return Doubt.FEW_CLEAN if self._shares.starved else Doubt.SET

    def _search(self, seen: Sequence[SampledObject], suspects: list[SampledObject],
                ) -> tuple[list[_NamedSuspect], list[int]] | None:
        """Return the objects that are needed, or their owners, and the numbers of all; None if there is no such set.

        Adds suspects that were missed.
        """
        groups = self._groups(suspects)
        try:
            places = smallest_set([group.numbers for group in groups], self._shares.share_of)
            if places is None:      # some were missed
                again = self._sampler.sample()
                suspects += _unknown(self._sampler.suspects(again), suspects)
                # Hundreds of objects of one owner move seldom each, and cost much together.
                suspects += _unknown(self._of_owners(groups, [*seen, *again]), suspects)
                groups = self._groups(suspects)
                places = smallest_set([group.numbers for group in groups], self._shares.share_of)
        except SearchLimitError:      # all suspects may be enough, but which of them are needed is not known
            places = None
        return None if places is None else self._narrow([groups[place] for place in places])

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
            if not name.ours:
                by_owner.setdefault(name.owner, _OwnerGroup(owner=name.owner, numbers=[], names=[])).add(each, name)
        return list(by_owner.values())

    def _narrow(self, chosen: Sequence[_OwnerGroup]) -> tuple[list[_NamedSuspect], list[int]]:
        """Return the objects of the owners that are needed, or the owners if many are, and the numbers of all."""
        members = [(number, name) for group in chosen for number, name in zip(group.numbers, group.names, strict=True)]
        places = [0] if len(members) == 1 else None
        if 1 < len(members) <= MOST_NARROWED:
            with suppress(SearchLimitError):
                places = smallest_set([[number] for number, _ in members], self._shares.share_of, most=MOST_ALONE)
        if places is None:
            return [group.named() for group in chosen], [number for number, _ in members]
        members = [members[place] for place in places]
        return ([_NamedSuspect(number=number, blamed=BlamedObject(
            name=name.name, kind=name.kind, type=name.type, argument=name.argument)) for number, name in members],
            [number for number, _ in members])

    def _confirm(self, named: Sequence[_NamedSuspect], numbers: Sequence[int]) -> FoundSet | None:
        """Measure the set once more beside what it is compared with; return it if it explains most of the gain."""
        modes = {name: self._modes[name] for name in (THREADS, PROCESSES, IMMORTAL)}
        rounds = ScalingRounds(self._process, {
            **modes, SET: CallMode(threads=modes[THREADS].threads, immortal=tuple(numbers))})
        if not rounds.take_enough(CONFIRMING_ROUNDS, self._placement):
            self._shares.starved = True
            return None
        if abs(_gained(rounds) - EXPLAINS) < CLOSE_CALL:
            rounds.take(CONFIRMING_ROUNDS)
        threads, processes, some = (rounds.total(name).rate for name in (THREADS, PROCESSES, SET))
        better = rounds.span(THREADS, SET)
        if some / threads < CONTRAST or better is None or better.lo <= 1 or _gained(rounds) < EXPLAINS:
            return None
        places = self._process.places([each.number for each in named])
        return FoundSet(
            objects=tuple(replace(each.blamed, places=lines) for each, lines in zip(named, places, strict=True)),
            numbers=tuple(numbers), explained=min(1.0, gain(some, threads, processes)), without=some / processes)


def _gained(rounds: ScalingRounds) -> float:
    """Return the share that the set has of the gain of everything immortal."""
    threads, full, some = (rounds.total(name).rate for name in (THREADS, IMMORTAL, SET))
    return gain(some, threads, full)


def _unknown(found: Sequence[SampledObject], known: Sequence[SampledObject]) -> list[SampledObject]:
    """Return the objects that are not known, each once."""
    numbers = {each.number for each in known}
    return [*{each.number: each for each in found if each.number not in numbers}.values()]


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
            argument=first.argument, count=len(self.names)))


class _MeasuredShares:
    """Measures which share of the gain of everything immortal a set of objects has."""

    def __init__(self, process: ZygoteProcess, modes: Mapping[str, CallMode], immortal: Span, *, until: float,
                 clock: Callable[[], float], placement: CpuPlacement) -> None:
        self.starved = False     # some measurement had too little clean time
        self._process = process
        self._all = modes[IMMORTAL]
        self._floor = 1 / immortal.ratio      # the rate of threads as they are, in that of everything immortal
        self._until = until
        self._placement = placement
        self._clock = clock
        self._known: dict[tuple[int, ...], float] = {}

    def share_of(self, numbers: Sequence[int]) -> float:
        """Return the share, against everything immortal in the same moments.

        Raises:
            SearchLimitError: The time is over, or too little of it was clean.
        """
        key = tuple(sorted(numbers))
        if key not in self._known:
            if self._clock() > self._until:
                raise SearchLimitError
            self._known[key] = self._measure(key)
        return self._known[key]

    def forget(self) -> None:
        """Measure again what was known."""
        self._known.clear()
        self.starved = False

    def _measure(self, numbers: tuple[int, ...]) -> float:
        pairs: list[tuple[CleanCalls, CleanCalls]] = []
        share = None
        for tries in range(1, 1 + TRIES):
            for _ in range(PAIRS):
                some = self._process.measure_cleanly(CallMode(threads=self._all.threads, immortal=numbers))
                pairs.append((some, self._process.measure_cleanly(self._all)))
            counted = self._counted(pairs, self._placement)
            if len(counted) < PAIRS and tries == TRIES:      # the host leaves the CPUs far apart: for both of a pair
                counted = max(counted, self._counted(pairs, CpuPlacement.FAR), key=len)
            if len(counted) < PAIRS:      # a single one may err by half of the gain
                continue
            part, whole = map(pooled, zip(*counted, strict=True))
            share = gain(part.rate / whole.rate, self._floor, 1.0) if part.enough() and whole.enough() else None
            if share is not None and (abs(share - ENOUGH) > CLOSE_CALL or len(counted) > PAIRS):
                break
        if share is None:
            self.starved = True
            raise SearchLimitError
        return share

    def _counted(
        self, pairs: Sequence[tuple[CleanCalls, CleanCalls]], placement: CpuPlacement,
    ) -> list[tuple[CleanCalls, CleanCalls]]:
        """Return the pairs that count in `placement`; neither or both were on hyperthreads of one core."""
        near = self._process.near
        return [pair for pair in pairs if all(counts(each, placement, near) for each in pair)
                and bool(pair[0].one_core) == bool(pair[1].one_core)]
