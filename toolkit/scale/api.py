"""Whether the public functions and methods of a module scale: a look at each, then the cause of the largest losses.

Each is called as its tests or doctests call it, in a process of its own, which forks for each measurement.  Every
thread makes the object, the arguments and what they consist of for itself, so what is in the way is the module's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from gilscope.toolkit.hammer.offered_calls import find_calls
from gilscope.toolkit.scale.investigation import ScalingInvestigation, investigate, take_a_look
from gilscope.toolkit.scale.judgement import ScalingEvidence, ScalingVerdict, judge
from gilscope.toolkit.scale.zygote_process import GIL_ON, LostZygoteError, UnscalableFunctionError, ZygoteProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gilscope.toolkit.hammer.offered_calls import OfferedCall

TOO_SHORT = 1.5e-7      # seconds: an empty function takes 0.03 to 0.1 us with the loop that calls it
LOOK_SECONDS = 30.0     # for the first calls of one: it hangs, or takes much longer than its test


class CallableOutcome(StrEnum):
    """What came of one callable; the first four are verdicts."""

    SCALES = ScalingVerdict.SCALES.value
    PLATEAUS = ScalingVerdict.PLATEAUS.value
    SLOWER = ScalingVerdict.SLOWER.value
    UNSURE = ScalingVerdict.UNSURE.value
    TOO_SHORT = "too short"        # and nothing else to say: the time is mostly that of the measuring loop
    FAILED = "failed"              # the call raises, crashes, hangs or takes too long
    NO_CALL = "no call found"
    NO_TIME = "no time"


LIMITED = frozenset({CallableOutcome.PLATEAUS, CallableOutcome.SLOWER})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableScaling:
    """A function, type or method, and whether its call scales."""

    name: str                       # "mean", "NormalDist.cdf"; of a function that was named: "app:work"
    call: str = ""                  # "mean([1, 2])"; "": none was found, or it was named
    place: str = ""                 # of the call: "tests/test_mean.py:12"
    outcome: CallableOutcome
    problem: str = ""               # why it failed
    seconds_per_call: float | None = None
    look: ScalingEvidence | None = None
    found: ScalingInvestigation | None = None    # None: it was only looked at

    @property
    def evidence(self) -> ScalingEvidence | None:
        """Return the evidence of the investigation, or of the look; None if there is none."""
        return self.found.evidence if self.found else self.look


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiScaling:
    """The public callables of a module on one build, those that lose most first."""

    callables: tuple[CallableScaling, ...]
    complete: bool      # all calls in tests and doctests were found and tried


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """The module, and how to look at it."""

    module: str
    threads: int
    folders: tuple[Path, ...]                 # to import it from
    files: tuple[tuple[Path, str], ...]       # tests, and pages with examples, each with its name in reports
    seconds: float                            # after which nothing more is begun


def investigate_api(
    python: Path, request: ApiRequest, say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic,
    keep: Callable[[ApiScaling], object] = lambda _: None,
) -> ApiScaling:
    """Look at each public callable, then investigate those that do not scale, the largest loss first.

    Args:
        python: The interpreter.
        request: The module, and how to look at it.
        say: Is told what comes next.
        clock: Tells seconds.
        keep: Is given what is known if a signal stops it.

    Raises:
        UnscalableFunctionError: The module cannot be imported, or turns the GIL on.
    """
    until = clock() + request.seconds
    offered = find_calls(python, request.module, request.folders, request.files)
    if offered.problem or offered.gil:
        raise UnscalableFunctionError(offered.problem or GIL_ON)
    if not offered.calls:
        raise UnscalableFunctionError(f"{request.module} offers no function or type of its own: name the module that "
                                      "does")
    say(f"looking at {sum(each.recipe is not None for each in offered.calls)} of {len(offered.calls)} public functions "
        "and methods, which tests or doctests call")
    survey = _ApiSurvey(python, request)
    seen = {each.name: _unseen(each, CallableOutcome.NO_TIME) for each in offered.calls}
    try:
        for each in offered.calls:
            if clock() < until:
                seen[each.name] = survey.look(each)
        for each in _to_investigate(offered.calls, seen):
            if clock() >= until:
                break
            say(f"{each.name}, {seen[each.name].outcome.value}: taking a longer look")
            seen[each.name] = survey.investigate(each, seen[each.name])
    except KeyboardInterrupt:
        keep(_in_order(seen, complete=offered.complete))
        raise
    return _in_order(seen, complete=offered.complete)


def _in_order(seen: dict[str, CallableScaling], *, complete: bool) -> ApiScaling:
    return ApiScaling(callables=tuple(sorted(seen.values(), key=_order)), complete=complete)


def _to_investigate(calls: Sequence[OfferedCall], seen: dict[str, CallableScaling]) -> Iterator[OfferedCall]:
    """Yield those that do not scale, the largest loss first, and then those of which it is not sure."""
    for outcomes in (LIMITED, frozenset({CallableOutcome.UNSURE})):
        chosen = [each for each in calls if seen[each.name].outcome in outcomes]
        yield from sorted(chosen, key=lambda each: _reached(seen[each.name]))


def _reached(each: CallableScaling) -> float:
    """Return the share of the ceiling; more than any if it is not known."""
    span = each.evidence.of_ceiling if each.evidence else None
    return span.ratio if span else float("inf")


def _order(each: CallableScaling) -> tuple[int, float]:
    if each.outcome in LIMITED:
        return 0, _reached(each)
    reached = _reached(each) if each.outcome is CallableOutcome.UNSURE else 0.0
    return 1 + [*CallableOutcome].index(each.outcome), reached


def _unseen(each: OfferedCall, outcome: CallableOutcome, problem: str = "") -> CallableScaling:
    if not each.shown:
        outcome = CallableOutcome.NO_CALL
    elif each.recipe is None:
        outcome, problem = CallableOutcome.FAILED, each.problem
    return CallableScaling(name=each.name, call=each.shown, place=each.place, outcome=outcome, problem=problem)


class _ApiSurvey:
    """Measures callables of one module, each in a process of its own."""

    def __init__(self, python: Path, request: ApiRequest) -> None:
        self._python = python
        self._request = request

    def look(self, each: OfferedCall) -> CallableScaling:
        if each.recipe is None:
            return _unseen(each, CallableOutcome.FAILED)
        return self._measured(each, _unseen(each, CallableOutcome.UNSURE), with_cause=False)

    def investigate(self, each: OfferedCall, seen: CallableScaling) -> CallableScaling:
        return self._measured(each, seen, with_cause=True)

    def _measured(self, each: OfferedCall, seen: CallableScaling, *, with_cause: bool) -> CallableScaling:
        name, threads = f"{self._request.module}:{each.name}", self._request.threads
        try:
            with ZygoteProcess(self._python, self._request.folders) as process:
                loaded = process.load(name, None, None, threads, recipe=each.recipe, look=not with_cause,
                                      limit=LOOK_SECONDS)
                if loaded.gil:
                    return replace(seen, outcome=CallableOutcome.FAILED, problem=GIL_ON)
                if with_cause:
                    found = investigate(process, loaded, threads)
                    return replace(seen, outcome=CallableOutcome(found.judgement.verdict.value), found=found)
                evidence, seconds = take_a_look(process, threads)
                outcome = CallableOutcome(judge(evidence).verdict.value)
                if outcome not in LIMITED and 0 < seconds < TOO_SHORT:
                    outcome = CallableOutcome.TOO_SHORT
                return replace(seen, outcome=outcome, look=evidence, seconds_per_call=seconds or None)
        except (UnscalableFunctionError, LostZygoteError) as error:
            return replace(seen, outcome=CallableOutcome.FAILED, problem=str(error))
