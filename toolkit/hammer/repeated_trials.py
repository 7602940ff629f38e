"""Repeat the trials of a project's calls: expect what one thread gets, and note what fails in several.

A trial that does not end in time is a hang if all its threads wait, or if it does so again while one thread makes the
same calls at once.  Otherwise it is slow, as on a busy machine, and says nothing about the calls.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

from gilscope.toolkit.hammer.stalls import StallPipe
from gilscope.toolkit.hammer.trials import (
    JUDGED,
    Trial,
    difference,
    drawn,
    raised,
    run_callers,
    run_judged,
    run_mix,
    state_entry,
)
from gilscope.toolkit.processes.forks import Fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.children.child import Journal
    from gilscope.toolkit.hammer.candidates import CallCandidate
    from gilscope.toolkit.hammer.targets import RepeatableCall
    from gilscope.toolkit.hammer.trial_budget import TrialBudget
    from gilscope.toolkit.processes.forks import ForkEnding, WriteRecord

MOST_OBSERVERS = 8      # calls that show the state of an object, or of a module
LOOP_SECONDS = 0.015    # of a thread's calls in a trial
MOST_ROUNDS, MOST_REPEATS, MOST_MIXED = 1000, 8000, 200
CALLS_IN_TURN = 12      # of a thread, where it is asked whether calls wait for other threads
ENOUGH = 3              # failures of one kind in a trial; then the time goes to others
ENOUGH_SLOW = 2         # likewise, slow ones, each of which takes as long as a hundred others


@dataclass(frozen=True, kw_only=True)
class TrialLimits:
    """Seconds that a trial may take."""

    trial: float = 10.0     # it has a fiftieth of a second of calls
    watch: float = 3.0      # for which one that takes longer is watched
    waiting: float = 1.0    # if its calls wait for other threads
    glance: float = 1.0     # for which calls are watched that should not take long, as none overlaps another
    alone: float = 2.0      # for its calls in one thread; if they take longer, the machine or the calls are slow


LIMITS = TrialLimits()


@dataclass(kw_only=True)
class RepeatedTrial:
    """A trial that is repeated, and what came of it."""

    trial: Trial
    candidates: list[CallCandidate]
    limits: TrialLimits = LIMITS
    expected: dict[str, Any] | None = None     # None: results are not compared
    ready: bool = False
    waits: bool = False  # for other threads: if threads take turns, it hangs, too, so a hang is no fault
    trials: int = 0
    slow: int = 0       # of these
    failures: dict[str, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)   # compiled functions, from several threads

    @property
    def names(self) -> list[str]:
        """Return the names of the functions that it calls."""
        return list(dict.fromkeys(each.name for each in self.candidates))

    @property
    def key(self) -> str:
        """Return a name that is the same in another process."""
        trial = self.trial
        meet = "" if trial.meet else " free"
        return f"{trial.kind}{meet}: {', '.join(each.call.recipe.shown for each in self.candidates)}"


def repeated_trials_of(candidates: Sequence[CallCandidate], threads: int) -> Iterator[RepeatedTrial]:
    """Yield trials in order, so that each function comes soon, and what fails most often comes first."""
    base = Trial(kind="same", threads=threads, rounds=1)
    functions = [each for each in candidates if not each.made]
    groups = [functions, *([each for each in candidates if each.made == made]
                           for made in dict.fromkeys(each.made for each in candidates if each.made))]
    for group in filter(None, groups):
        rounds = _many(sum(each.seconds for each in group) / len(group), MOST_MIXED)
        yield RepeatedTrial(trial=replace(base, kind="mix", rounds=rounds, vary=any(each.vary for each in group)),
                            candidates=group)
    first = {each.name: each for each in reversed(candidates)}
    for some in ([*first.values()], [each for each in candidates if first[each.name] is not each]):
        # One trial of each function, then the next one of each: the time may not suffice for all.
        for row in zip_longest(*(_trials_of(each, base) for each in some)):
            yield from filter(None, row)


def _trials_of(each: CallCandidate, base: Trial) -> Iterator[RepeatedTrial]:
    seconds = each.seconds + each.text_seconds
    rounds = _many(seconds + each.setup_seconds + 5e-6, MOST_ROUNDS)   # with the making of arguments
    # More threads than cores would wait for a core in each round in which they meet.
    fewer = replace(base, threads=min(base.threads, max(2, len(os.sched_getaffinity(0)))))
    yield RepeatedTrial(trial=replace(base, kind="same", repeats=_many(seconds, MOST_REPEATS)), candidates=[each])
    if not each.made:
        yield RepeatedTrial(trial=replace(base, kind="first"), candidates=[each])
    else:
        objects = replace(fewer, kind="objects", rounds=rounds, repeats=2, vary=each.vary)
        yield RepeatedTrial(trial=objects, candidates=[each])
    if each.vary:
        keys = replace(fewer, kind="keys", rounds=rounds, repeats=2, vary=True)
        yield RepeatedTrial(trial=keys, candidates=[each])
        yield RepeatedTrial(trial=replace(keys, meet=False, threads=base.threads), candidates=[each])
        yield RepeatedTrial(trial=replace(base, kind="apart", rounds=rounds, vary=True, meet=False), candidates=[each])
    if each.containers:
        callers = replace(base, kind="callers", rounds=_many(each.seconds, MOST_MIXED))
        yield RepeatedTrial(trial=callers, candidates=[each])


def sized(repeated: RepeatedTrial, sizes: dict[str, list[int]]) -> RepeatedTrial:
    """Return a trial with as many rounds as another process has made, so that their results can be compared."""
    if repeated.key in sizes:
        rounds, repeats = sizes[repeated.key]
        repeated.trial = replace(repeated.trial, rounds=rounds, repeats=repeats)
    return repeated


def _many(seconds: float, most: int) -> int:
    return max(1, min(most, int(LOOP_SECONDS / max(seconds, 1e-9))))


# The trials.

class _Half:
    """Trials that share time, and how much they have taken."""

    def __init__(self, trials: Iterable[RepeatedTrial]) -> None:
        self.trials = deque(trials)
        self.seconds = 0.0


def hammer_trials(trials: Sequence[RepeatedTrial], budget: TrialBudget, seed: int, journal: Journal) -> None:
    """Repeat the trials until the budget is spent, or each has failed often enough.

    Those whose results are compared are many, and those that may only crash take longer: each half gets half the time.
    """
    draw = random.Random(seed)
    halves = [_Half(each for each in trials if each.trial.kind in JUDGED),
              _Half(each for each in trials if each.trial.kind not in JUDGED)]
    while (left := [half for half in halves if half.trials]) and not budget.is_spent():
        half = min(left, key=lambda each: each.seconds)
        began = time.monotonic()
        repeated = half.trials.popleft()
        # One that fails in one thread, too, is of no use.
        repeated.ready = repeated.ready or prepare(repeated, trials, journal)
        if repeated.ready:
            trial = replace(repeated.trial, seed=draw.randrange(2**30), stalls=repeated.trials % 2 == 0)
            make_trial(repeated, trial, trials, journal)
            if max(repeated.failures.values(), default=0) < ENOUGH and repeated.slow < ENOUGH_SLOW:
                half.trials.append(repeated)
        half.seconds += time.monotonic() - began


def prepare(repeated: RepeatedTrial, trials: Sequence[RepeatedTrial], journal: Journal) -> bool:
    """Make a trial's calls in one thread, in several orders; return False if that fails."""
    results, limits = [], repeated.limits
    if repeated.trial.kind in JUDGED and any(each.waits for each in repeated.candidates):
        return False
    for trial in _alone(repeated.trial):
        records, ending = _forked(repeated, trial, trials, limits.alone, limits.glance)
        # Of a mix, one thread makes the calls, but another one has made the objects, and may have left a lock held.
        if ending.kind == "blocked" and trial.order != "one" and trial.kind != "callers":
            _write_waits(repeated, journal)
            repeated.waits = True
            return trial.kind == "mix"
        if ending.kind in {"slow", "spinning"}:   # a busy machine
            records, ending = _forked(repeated, trial, trials, limits.trial)
        if ending.kind != "done" or not records:
            journal.write("alone", key=repeated.key, names=repeated.names, ending=ending.reason)
            return False
        results.append(records[-1]["results"])
    if repeated.trial.kind not in JUDGED:
        repeated.waits = any(each.waits for each in repeated.candidates)
        if repeated.trial.kind == "mix" and not repeated.waits and _waits_in_turn(repeated, trials):
            repeated.waits = True
            _write_waits(repeated, journal)
        return True
    if all(difference(results[0], each, objects=False) is None for each in results[1:]):
        repeated.expected = results[0]
        if any(difference(results[0], each) for each in results[1:]):   # equal, but not one object
            repeated.expected = {
                **results[0], "rounds": [{**each, "one_object": False} for each in results[0]["rounds"]]}
    return True


def _write_waits(repeated: RepeatedTrial, journal: Journal) -> None:
    """Remember calls that wait for other threads: they are not compared, and no hang of them is a fault."""
    for each in repeated.candidates:
        each.waits = True
    journal.write("waits", names=repeated.names)


def _waits_in_turn(repeated: RepeatedTrial, trials: Sequence[RepeatedTrial]) -> bool:
    """Return True if a mix hangs although no calls overlap: a lock that one thread's call leaves held stops others."""
    limits = repeated.limits
    in_turn = replace(repeated.trial, order="mixed", rounds=CALLS_IN_TURN, stalls=False)
    _, ending = _forked(repeated, in_turn, trials, limits.alone, limits.glance)
    if ending.kind in {"slow", "spinning"}:   # or a busy machine, on which a fork needs its time to begin
        _, ending = _forked(repeated, in_turn, trials, limits.trial, limits.watch)
    return ending.kind in {"blocked", "spinning"}


def _alone(trial: Trial) -> tuple[Trial, ...]:
    """Return the same calls in one thread, or one after the other."""
    return trial.references() if trial.kind in JUDGED else (replace(trial, threads=1, stalls=False),)


def _forked(repeated: RepeatedTrial, trial: Trial, trials: Sequence[RepeatedTrial], limit: float,
            watch: float = 0.0) -> tuple[list[dict[str, Any]], ForkEnding]:
    """Make one trial in a fork; return its records, and how it ended."""
    pipe = StallPipe()
    try:
        return Fork(partial(_run, trial, repeated, trials, pipe), keep_output=True).result(
            limit, watch=watch, meanwhile=pipe.release)
    finally:
        pipe.close()


def _run(trial: Trial, repeated: RepeatedTrial, trials: Sequence[RepeatedTrial], pipe: StallPipe, write: WriteRecord,
         ) -> None:
    """Run a trial in this process and write its results."""
    first = repeated.candidates[0]
    if trial.kind == "mix":
        run_mix(trial, [each.call for each in repeated.candidates], _readers, pipe, write)
        write(results=None)
    elif trial.kind == "callers":
        run_callers(trial, first.call, pipe, write)
        write(results=None)
    else:
        state = partial(_state, first, trials=trials)
        write(results=run_judged(trial, first.call, state, pipe, write).plain())


def make_trial(repeated: RepeatedTrial, trial: Trial, trials: Sequence[RepeatedTrial], journal: Journal) -> None:
    """Make one trial from several threads and write what it shows."""
    limits = repeated.limits
    if repeated.waits:
        records, ending = _forked(repeated, trial, trials, limits.waiting)
        repeated.trials += 1
        repeated.called.update(*(each.reached for each in _called(repeated, trial)))
        if ending.kind == "crash":
            _failed(repeated, trial, journal, "crash", reason=ending.reason, output=ending.output,
                    beside=_beside(records))
        return
    made = [_forked(repeated, trial, trials, limits.trial, limits.watch)]
    # It may wait in a loop for what never comes, but also need its time, as on a busy machine.  One thread's speed says
    # whether the calls and the machine are fast enough, and another fork whether it was chance.
    seconds = _seconds_alone(repeated, trial, trials) if made[0][1].kind == "spinning" else None
    if seconds is not None:
        made.append(_forked(repeated, trial, trials, limits.trial, limits.watch))
    repeated.trials += len(made)
    repeated.called.update(*(each.reached for each in _called(repeated, trial)))
    last = made[-1][1]
    if last.kind == "blocked" or [ending.kind for _, ending in made] == ["spinning", "spinning"]:
        how = ("and all its threads wait" if last.kind == "blocked" else
               f"twice, while its threads ran; one thread makes the calls in {seconds:.2g} s")
        _failed(repeated, trial, journal, "hang", count=len(made), reason=f"{last.reason}, {how}", output=last.output,
                beside=_beside(made[-1][0]))
        return
    for records, ending in made:
        if ending.kind in {"slow", "spinning"}:
            repeated.slow += 1
            journal.write("slow", names=_names(repeated, trial))
        elif ending.kind == "crash":
            _failed(repeated, trial, journal, "crash", reason=ending.reason, output=ending.output,
                    beside=_beside(records))
        elif records and repeated.expected is not None and (
                found := difference(repeated.expected, records[-1]["results"])):
            _failed(repeated, trial, journal, found["what"], found=found)


def _seconds_alone(repeated: RepeatedTrial, trial: Trial, trials: Sequence[RepeatedTrial]) -> float | None:
    """Return the seconds that one thread takes for a trial's calls; None if it fails or needs too long."""
    began = time.monotonic()
    _, ending = _forked(repeated, _alone(trial)[0], trials, repeated.limits.alone)
    seconds = time.monotonic() - began
    return seconds if ending.kind == "done" and seconds <= repeated.limits.alone else None


def _called(repeated: RepeatedTrial, trial: Trial) -> list[CallCandidate]:
    """Return the calls of a trial's threads."""
    return drawn(trial, repeated.candidates) if trial.kind == "mix" else repeated.candidates


def _names(repeated: RepeatedTrial, trial: Trial) -> list[str]:
    return sorted({each.name for each in _called(repeated, trial)})


def _failed(  # noqa: PLR0913 - the fields of the record
    repeated: RepeatedTrial, trial: Trial, journal: Journal, what: str, *, count: int = 1,
    found: dict[str, Any] | None = None, reason: str = "", output: str = "", beside: Sequence[str] = (),
) -> None:
    repeated.failures[what] = repeated.failures.get(what, 0) + count
    called = _called(repeated, trial)
    journal.write("failure", key=repeated.key, kind=trial.kind, names=_names(repeated, trial), what=what, found=found,
                  calls=[each.call.recipe.shown for each in called][:MOST_OBSERVERS],
                  places=[each.call.recipe.place for each in called][:MOST_OBSERVERS],
                  threads=trial.threads, stalls=trial.stalls, seed=trial.seed, count=count, reason=reason,
                  output=output, beside=[*beside])


def _beside(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the actions of other threads of a trial on the same objects, as its process recorded them."""
    return next((each["beside"] for each in records if "beside" in each), [])


def _readers(receiver: Any) -> dict[str, Callable[[], Any]]:
    """Return calls that read or iterate over an object, as its type allows, by their names in reports."""
    kind = type(receiver)
    found: dict[str, Callable[[], Any]] = {"repr()": lambda: repr(receiver)}
    if hasattr(kind, "__len__"):
        found["len()"] = lambda: len(receiver)
    if hasattr(kind, "__iter__"):
        found["iteration"] = lambda: [*zip(receiver, range(100))]  # noqa: B905  it may have no end
    if hasattr(kind, "__buffer__"):
        found["memoryview()"] = lambda: bytes(memoryview(receiver))
    return found | {f".{name}": partial(getattr, receiver, name) for name in _attributes(kind)}


def _attributes(kind: type) -> list[str]:
    """Return the public attributes of a type whose values C code computes or stores."""
    return [name for name, member in list(vars(kind).items()) if not name.startswith("_")
            and type(member).__name__ in {"getset_descriptor", "member_descriptor", "property"}]


def _state(first: CallCandidate, receiver: Any, trials: Sequence[RepeatedTrial]) -> list[dict[str, Any]]:
    """Return the state of an object, or of a module, as other calls of the project's tests show it."""
    found = []
    if receiver is not None:
        kind = type(receiver)
        found += [state_entry(f"{name} is", _outcome(partial(getattr, receiver, name))) for name in _attributes(kind)]
        if hasattr(kind, "__len__"):
            found.append(state_entry("len() is", _outcome(lambda: len(receiver))))
    others = {id(each): each for repeated in trials for each in repeated.candidates
              if each.made == first.made and each.name != first.name}
    return [*found, *(state_entry(f"{each.call.recipe.shown} gives", _outcome(partial(_again, each.call, receiver)))
                      for each in [*others.values()][:MOST_OBSERVERS])]


def _again(call: RepeatableCall, receiver: Any) -> Any:
    scope = call.scope()
    args, kwargs = call.arguments(scope)
    return call.function(scope, receiver)(*args, **kwargs)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  a result like any other
        return raised(error)
