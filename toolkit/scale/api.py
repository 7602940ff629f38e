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
    from gilscope.toolkit.scale.zygote_process import LoadedFunction

TOO_SHORT = 1.5e-7      # seconds: an empty function takes 0.03 to 0.1 us with the loop that calls it
LOOK_SECONDS = 30.0     # for the first calls of one: it hangs, or takes much longer than its test


class ApiOutcome(StrEnum):
    """What came of one callable; the first four are verdicts."""

    SCALES = ScalingVerdict.SCALES.value
    PLATEAUS = ScalingVerdict.PLATEAUS.value
    SLOWER = ScalingVerdict.SLOWER.value
    UNSURE = ScalingVerdict.UNSURE.value
    TOO_SHORT = "too short"        # and nothing else to say: the time is mostly that of the measuring loop
    FAILED = "failed"              # the call raises, crashes, hangs or takes too long
    NO_CALL = "no call found"
    NO_TIME = "no time"


LIMITED = frozenset({ApiOutcome.PLATEAUS, ApiOutcome.SLOWER})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCallable:
    """A public function, type or method, and whether its call scales."""

    name: str                       # "mean", "NormalDist.cdf"
    call: str                       # "mean([1, 2])"; "": none was found
    place: str                      # of the call: "tests/test_mean.py:12"
    outcome: ApiOutcome
    problem: str = ""               # why it failed
    seconds_per_call: float | None = None
    evidence: ScalingEvidence | None = None      # of the investigation, or of the look
    found: ScalingInvestigation | None = None    # None: it was only looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiScaling:
    """The public callables of a module on one build, those that lose most first."""

    callables: tuple[ApiCallable, ...]
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
    seen = {each.name: _unseen(each, ApiOutcome.NO_TIME) for each in offered.calls}
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


def _in_order(seen: dict[str, ApiCallable], *, complete: bool) -> ApiScaling:
    return ApiScaling(callables=tuple(sorted(seen.values(), key=_order)), complete=complete)


def _to_investigate(calls: Sequence[OfferedCall], seen: dict[str, ApiCallable]) -> Iterator[OfferedCall]:
    """Yield those that do not scale, the largest loss first, and then those of which it is not sure."""
    for outcomes in (LIMITED, frozenset({ApiOutcome.UNSURE})):
        chosen = [each for each in calls if seen[each.name].outcome in outcomes]
        yield from sorted(chosen, key=lambda each: _reached(seen[each.name]))


def _reached(each: ApiCallable) -> float:
    """Return the share of the ceiling; more than any if it is not known."""
    span = each.evidence.of_ceiling if each.evidence else None
    return span.ratio if span else float("inf")


def _order(each: ApiCallable) -> tuple[int, float]:
    if each.outcome in LIMITED:
        return 0, _reached(each)
    return 1 + [*ApiOutcome].index(each.outcome), 0.0 if each.outcome is not ApiOutcome.UNSURE else _reached(each)


def _unseen(each: OfferedCall, outcome: ApiOutcome, problem: str = "") -> ApiCallable:
    if not each.shown:
        outcome = ApiOutcome.NO_CALL
    elif each.recipe is None:
        outcome, problem = ApiOutcome.FAILED, each.problem
    return ApiCallable(name=each.name, call=each.shown, place=each.place, outcome=outcome, problem=problem)


class _ApiSurvey:
    """Measures callables of one module, each in a process of its own."""

    def __init__(self, python: Path, request: ApiRequest) -> None:
        self._python = python
        self._request = request

    def look(self, each: OfferedCall) -> ApiCallable:
        if each.recipe is None:
            return _unseen(each, ApiOutcome.FAILED)
        return self._measured(each, _unseen(each, ApiOutcome.UNSURE), with_cause=False)

    def investigate(self, each: OfferedCall, seen: ApiCallable) -> ApiCallable:
        return self._measured(each, seen, with_cause=True)

    def _measured(self, each: OfferedCall, seen: ApiCallable, *, with_cause: bool) -> ApiCallable:
        name, threads = f"{self._request.module}:{each.name}", self._request.threads
        try:
            with ZygoteProcess(self._python, self._request.folders) as process:
                loaded = process.load(name, None, None, threads, recipe=each.recipe, look=not with_cause,
                                      limit=LOOK_SECONDS)
                if loaded.gil:
                    return replace(seen, outcome=ApiOutcome.FAILED, problem=GIL_ON)
                if with_cause:
                    return investigated(process, loaded, threads, seen)
                return looked_at(process, threads, seen)
        except (UnscalableFunctionError, LostZygoteError) as error:
            return replace(seen, outcome=ApiOutcome.FAILED, problem=str(error))


def looked_at(process: ZygoteProcess, threads: int, seen: ApiCallable) -> ApiCallable:
    """Return a callable with the verdict of a few measurements.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    evidence, seconds = take_a_look(process, threads)
    outcome = ApiOutcome(judge(evidence).verdict.value)
    if outcome not in LIMITED and 0 < seconds < TOO_SHORT:
        outcome = ApiOutcome.TOO_SHORT
    return replace(seen, outcome=outcome, evidence=evidence, seconds_per_call=seconds or None)


def investigated(process: ZygoteProcess, loaded: LoadedFunction, threads: int, seen: ApiCallable) -> ApiCallable:
    """Return a callable with the verdict and the cause, measured anew.

    Raises:
        UnscalableFunctionError: The function raised, or did not return.
        LostZygoteError: The process has ended.
    """
    found = investigate(process, loaded, threads)
    return replace(seen, outcome=ApiOutcome(found.judgement.verdict.value), evidence=found.evidence, found=found)
