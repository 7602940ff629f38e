"""Measure several call modes in turn, round by round, so that what is compared was measured in the same moments."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.judgement import Span
from gilscope.toolkit.scale.throughput import LEAST_CLEAN, pooled
from gilscope.toolkit.scale.zygote_process import CallMode
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import PairedArms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.scale.throughput import CleanCalls
    from gilscope.toolkit.scale.zygote_process import ZygoteProcess

ONE, THREADS, PROCESSES, IMMORTAL, NO_COLLECTOR = "one", "threads", "processes", "immortal", "no collector"
LEAST_ROUNDS = 3          # that a ratio is of
TRIES = 3                 # times as many measurements, until enough have the CPUs where they should be
LEAST_OF_QUOTA = 0.4      # a value with less of the clean time that it needs is biased upward, and is left out


def compared_modes(threads: int) -> dict[str, CallMode]:
    """Return the modes whose rates decide the verdict, by name."""
    return {ONE: CallMode(threads=1), THREADS: CallMode(threads=threads),
            PROCESSES: CallMode(threads=threads, processes=True)}


def _is_enough(calls: Iterable[CleanCalls]) -> bool:
    """Return True for three values' worth of clean time."""
    parts = list(calls)
    return bool(parts) and pooled(parts).enough(3 * LEAST_CLEAN)


class CpuPlacement(StrEnum):
    """Where the CPUs of the threads were, the most wanted first; the host of a virtual machine moves them."""

    NEAR = "near"              # a cache line takes at most the time of `throughput.near_limit`, or it is not known
    FAR = "far"                # longer, at least in some of the measurements
    ONE_CORE = "one core"      # hyperthreads of one, at least in some


class RoundCalls:
    """The calls of some modes, by name and round, wherever they were measured.

    Those count that were measured on near CPUs; with too few of these, those on far CPUs, too, and then all.
    """

    def __init__(self, found: Mapping[str, Mapping[int, CleanCalls]], near: float = inf) -> None:
        """Take what was found.

        Args:
            found: The calls.
            near: See `throughput.near_limit`.
        """
        self._found = {name: dict(by_round) for name, by_round in found.items()}
        self._near_limit = near

    @property
    def near(self) -> float:
        """See `throughput.near_limit`."""
        return self._near_limit

    @property
    def placement(self) -> CpuPlacement:
        """Return the placement that decides which measurements count."""
        near = self.near
        # A mode of a few rounds, such as that without the collector, does not decide about all others.
        most = max(map(len, self._found.values()), default=0)
        several = [by_round for by_round in self._found.values()
                   if len(by_round) == most and any(each.threads > 1 for each in by_round.values())]
        for placement in (CpuPlacement.NEAR, CpuPlacement.FAR):
            lost = {number for by_round in several for number, calls in by_round.items()
                    if not counts(calls, placement, near)}
            # What is compared must have rounds in common.
            whole = [[calls for number, calls in by_round.items() if number not in lost] for by_round in several]
            if not lost or all(len(calls) >= LEAST_ROUNDS and _is_enough(calls) for calls in whole):
                return placement
        return CpuPlacement.ONE_CORE

    @property
    def on_one_core(self) -> bool:
        """Return True if measurements on hyperthreads of one core count, as too few others were made."""
        return self.placement is CpuPlacement.ONE_CORE

    def far(self) -> RoundCalls:
        """Return the measurements on far CPUs."""
        return RoundCalls({name: {number: calls for number, calls in by_round.items()
                                  if calls.handoff > self.near and not calls.one_core}
                           for name, by_round in self._found.items()})

    def handoffs(self) -> list[float]:
        """Return the nanoseconds that a cache line took from core to core, of each measurement that tells it."""
        return [calls.handoff for by_round in self._found.values() for calls in by_round.values()
                if calls.handoff and not calls.one_core]

    def _counted(self, name: str) -> dict[int, CleanCalls]:
        """Return a mode's calls by round; those that do not count are emptied."""
        placement, near = self.placement, self.near
        return {number: calls if counts(calls, placement, near) else replace(calls, calls=0, spent=0, made=0)
                for number, calls in self._found[name].items()}

    def total(self, name: str) -> CleanCalls:
        """Return all measurements of a mode as one."""
        return pooled(self._counted(name).values())

    def enough(self, names: Sequence[str]) -> bool:
        """Return True if each of the modes has three values' worth of clean time."""
        return all(_is_enough(self._counted(name).values()) for name in names)

    def clean_seconds(self, names: Sequence[str]) -> float:
        """Return the shortest clean time of the modes."""
        return min(self.total(name).clean_seconds for name in names)

    def span(self, baseline: str, sample: str) -> Span | None:
        """Return how many times the rate of `baseline` that of `sample` is; None if too few rounds have both."""
        return self._span(baseline, sample, {
            name: {number: 1 / calls.rate for number, calls in self._counted(name).items()
                   if calls.rate and calls.enough(LEAST_OF_QUOTA * LEAST_CLEAN)}
            for name in self._found})

    def span_on_cores(self, baseline: str, sample: str) -> Span | None:
        """Return the same of all calls, by `CleanCalls.rate_on_cores`."""
        return self._span(baseline, sample, {
            name: {number: 1 / calls.rate_on_cores for number, calls in self._counted(name).items()
                   if calls.rate_on_cores} for name in self._found})

    @staticmethod
    def _span(baseline: str, sample: str, seconds: Mapping[str, Mapping[int, float]]) -> Span | None:
        if not (seconds[baseline] and seconds[sample]):
            return None
        taken = {name: by_round for name, by_round in seconds.items() if by_round}
        classes = {name: ArmClass(workers=name == ONE, build=None) for name in taken}
        found = PairedArms(taken, classes=classes).compare(baseline, sample)
        return None if found is None else Span(ratio=found.ratio, lo=found.lo, hi=found.hi)


def counts(calls: CleanCalls, placement: CpuPlacement, near: float) -> bool:
    """Return True if calls count where those do that were measured with the CPUs in `placement`.

    Args:
        calls: Of one measurement.
        placement: Of what they are compared with.
        near: See `throughput.near_limit`.
    """
    if placement is CpuPlacement.NEAR:
        return not calls.one_core and calls.handoff <= near
    return placement is CpuPlacement.ONE_CORE or not calls.one_core


class ScalingRounds(RoundCalls):
    """Measures some modes of one function in turn."""

    def __init__(self, process: ZygoteProcess, modes: Mapping[str, CallMode]) -> None:
        """Measure nothing yet."""
        super().__init__({name: {} for name in modes})
        self._process = process
        self._modes = dict(modes)
        self._rounds = 0

    @property
    def near(self) -> float:
        """See `throughput.near_limit`; from all measurements of the process so far."""
        return self._process.near

    def take(self, rounds: int, names: Sequence[str] | None = None) -> None:
        """Measure more rounds, of all modes or some, in reversed order every other round."""
        chosen = list(names or self._modes)
        for _ in range(rounds):
            for name in chosen[::-1] if self._rounds % 2 else chosen:
                self._found[name][self._rounds] = self._process.measure_cleanly(self._modes[name])
            self._rounds += 1

    def take_enough(self, rounds: int, placement: CpuPlacement) -> bool:
        """Measure rounds of all modes, and again, until enough of them are like others in `placement`.

        Returns:
            True if there are enough.  If the host leaves the CPUs far apart, those on far ones do: they are compared
            with each other.  Those on hyperthreads of one core, which hide contention, do only if the others are, too.
        """
        order = list(CpuPlacement)
        for _ in range(TRIES):
            self.take(rounds)
            enough = self.enough(list(self._modes))
            if enough and order.index(self.placement) <= order.index(placement):
                return True
        return enough and not self.on_one_core
