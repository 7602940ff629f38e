"""One trial: the same calls from several threads, or from one as a reference, and what they gave.

In most kinds of trial all threads make equal calls on equal state.  If each call has its effect at one instant
(linearizable), every order of them gives the same results and leaves the same state, so a difference from one thread is
the code's.  Runs in the build under test, in a process of its own that may crash.

| Kind | Calls of a thread | Compared |
| --- | --- | --- |
| first | one, the first in the process | results, and whether equal arguments gave one object |
| keys | with new arguments in each round | the same |
| objects | on a new object in each round | the same |
| same | one call, many times | results, and the state afterwards |
| apart | with arguments of its own | each result, where it follows from the arguments alone |
| mix | all of a module or of one object, with others' arguments | nothing: a crash or a hang counts |
| callers | on one list, dict, set or bytearray that a thread changes | nothing |
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gilscope.toolkit.hammer.meeting import SignsOfLife, run_in_turn, run_together
from gilscope.toolkit.hammer.targets import MUTABLE
from gilscope.toolkit.hammer.values import as_text, fresh, varied, with_fresh_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    from gilscope.toolkit.hammer.meeting import Meeting, Turns
    from gilscope.toolkit.hammer.stalls import StallPipe
    from gilscope.toolkit.hammer.targets import RepeatableCall
    from gilscope.toolkit.processes.forks import WriteRecord

    type Kind = Literal["first", "keys", "objects", "same", "apart", "mix", "callers"]
    type Order = Literal["together"] | Turns
    type Step = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

JUDGED = frozenset({"first", "keys", "objects", "same", "apart"})
KEYS = (1, 1, 3)      # that threads of a mix collide on
FUNCTIONS = (2, 2, 3, 100)   # that are in a mix, of those that could be
LENGTHS = (1, 2, 4, 8, 16)   # by which values of a mix are multiplied
SHARE_OF_ROLE = 0.5   # of a thread's calls in a mix: the one function that is its role
SHARE_OF_READERS = 0.2
LOOP_SECONDS = 0.08  # of CPU time of each thread, in a trial where only a crash or a hang counts
MOST_LOOP_SECONDS = 5.0   # of such a trial: calls that wait use little CPU time
SHARE_DELAYED = 0.7   # of the rounds in which threads meet: one begins a little later
LARGEST = 2**53       # of numbers that are compared: JSON holds it, and so does a float
LONGEST_DELAY = 60    # empty iterations between two threads' starts: 1 to 2 microseconds
ORDERS: dict[str, tuple[Turns, ...]] = {
    # Threads that wait for each other in each round only change places within it.
    "rounds": ("one", "turns"), "free": ("one", "whole", "mixed")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The plan of one trial: the calls of each thread."""

    kind: Kind
    threads: int
    rounds: int
    repeats: int = 1         # of a call in each round
    vary: bool = False       # the first argument that can be, by round
    meet: bool = True        # the threads wait for each other before each round
    stalls: bool = False     # threads are stopped at arbitrary instructions
    seed: int = 0
    order: Order = "together"

    def references(self) -> tuple[Trial, ...]:
        """Return the same calls in the orders in which one of them is made after the other."""
        orders = ORDERS["rounds" if self.meet and self.kind != "apart" else "free"]
        return tuple(replace(self, order=order, stalls=False) for order in orders)


class CallResults:
    """The results of a trial, in a form that two trials are compared by."""

    def __init__(self, rounds: Iterable[Sequence[Any]], state: Sequence[dict[str, Any]]) -> None:
        """Take the results of each round, and the state afterwards, see `state_entry`."""
        self.rounds = [_of_round(each) for each in rounds]
        self.state = [*state]

    def plain(self) -> dict[str, Any]:
        """Return them as JSON holds it."""
        return {"rounds": self.rounds, "state": self.state}


class _Raised:
    """The exception that a call raised, as a result."""

    def __init__(self, error: BaseException) -> None:
        self.name = f"raised {type(error).__name__}"


def state_entry(name: str, value: Any) -> dict[str, Any]:
    """Return a part of the state as JSON holds it; `number` is set if the value is one, so that it can be compared."""
    is_number = type(value) in {int, float} and abs(value) < LARGEST
    return {"name": name, "value": _text(value), "number": value if is_number else None}


def raised(error: BaseException) -> object:
    """Return the result of a call that raised an exception."""
    return _Raised(error)


def _text(result: Any) -> str:
    return result.name if isinstance(result, _Raised) else as_text(result)


def _of_round(results: Sequence[Any]) -> dict[str, Any]:
    counts = Counter(map(_text, results))
    content = "\0".join(f"{text}\0{count}" for text, count in sorted(counts.items()))
    return {"hash": hashlib.sha256(content.encode(errors="replace")).hexdigest()[:16], "calls": len(results),
            "values": len(counts), "few": sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:4],
            "one_object": len({id(each) for each in results}) == 1}


def difference(expected: dict[str, Any], got: dict[str, Any], *, objects: bool = True) -> dict[str, Any] | None:
    """Return the first difference between two trials' results, or None.

    Args:
        expected: Of one thread.
        got: Of several, which may have made fewer rounds.
        objects: Equal results must also be one object where they were with one thread.
    """
    for number, (here, there) in enumerate(zip(expected["rounds"], got["rounds"], strict=False)):
        if here["hash"] != there["hash"]:
            return {"what": "results", "round": number, "one": here, "several": there}
    for here, there in zip(expected["state"], got["state"], strict=True):
        if here["value"] != there["value"]:
            return {"what": "state", "one": here, "several": there}
    if objects and all(each["one_object"] for each in expected["rounds"]):
        for number, there in enumerate(got["rounds"]):
            if not there["one_object"]:
                return {"what": "objects", "round": number, "several": there}
    return None


# Preparing.

def _steps(trial: Trial, call: RepeatableCall, thread: int, receivers: Sequence[tuple[dict[str, Any], Any]],
           ) -> list[Step]:
    """Return a thread's call of each round, with arguments that only it has."""
    steps = []
    for number in range(trial.rounds):
        scope, receiver = receivers[number % len(receivers)]
        args, kwargs = call.arguments(scope)
        key = number * trial.threads + thread if trial.kind == "apart" else number
        steps.append((call.function(scope, receiver), _made(args, key if trial.vary else 0),
                      {name: fresh(value) for name, value in kwargs.items()}))
    return steps


def _made(args: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """Return new arguments; the first that can be is varied by the number."""
    made, is_varied = [], not number
    for each in args:
        value = varied(each, number) if not is_varied else fresh(each)
        is_varied = is_varied or type(value) is not type(each) or value != each
        made.append(value)
    return tuple(made)


def _receivers(trial: Trial, call: RepeatableCall) -> list[tuple[dict[str, Any], Any]]:
    """Return (variables, object) of each round that has its own, else of all rounds."""
    count = trial.rounds if trial.kind == "objects" else 1
    return [(scope, call.receiver(scope)) for scope in (call.scope() for _ in range(count))]


# Judged trials.

def run_judged(trial: Trial, call: RepeatableCall, observe: Callable[[Any], list[dict[str, Any]]], pipe: StallPipe,
               write: WriteRecord) -> CallResults:
    """Make a trial's calls and return their results.

    Args:
        trial: The trial.
        call: The call that all threads make.
        observe: Returns the state of an object, or of its module, afterwards.
        pipe: Where threads are stopped.
        write: Writes a sign of life.
    """
    receivers = _receivers(trial, call)
    steps = [_steps(trial, call, thread, receivers) for thread in range(trial.threads)]
    results: list[list[list[Any]]] = [[[] for _ in range(trial.rounds)] for _ in range(trial.threads)]
    rounds, both = trial.rounds, [*zip(steps, results, strict=True)]
    if trial.order == "together":
        meets = trial.meet and trial.rounds > 1
        rounds = min(rounds, run_together([partial(_meet_each_round if meets else _go_on, trial, *each)
                                           for each in both], pipe, SignsOfLife(write, lambda _: _returned(results)),
                                          stalls=trial.stalls and not meets, seed=trial.seed))
    else:
        run_in_turn([[partial(_repeat, step, trial.repeats, mine) for step, mine in zip(*each, strict=True)]
                     for each in both], trial.order)
    by_round: Iterable[Sequence[Any]]
    if trial.kind == "apart":   # each has arguments of its own
        by_round = (results[thread][number] for number in range(rounds) for thread in range(trial.threads))
    else:
        by_round = ([each for mine in results for each in mine[number]] for number in range(rounds))
    return CallResults(by_round, observe(receivers[0][1]) if trial.kind == "same" else [])


def _returned(results: Sequence[Sequence[Sequence[Any]]]) -> int:
    """Return the number of calls that have a result, while other threads add theirs."""
    return sum(len(mine) for rounds in results for mine in rounds)


def _repeat(step: Step, repeats: int, results: list[Any]) -> None:
    function, args, kwargs = step
    for _ in range(repeats):
        try:
            results.append(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  a result like any other
            results.append(_Raised(error))


def _meet_each_round(trial: Trial, steps: Sequence[Step], results: Sequence[list[Any]], meeting: Meeting, thread: int,
                     ) -> None:
    """Make a thread's calls, each round beginning when all threads are there, give or take a microsecond."""
    draw = random.Random(trial.seed * 64 + thread)
    delays = [draw.randrange(LONGEST_DELAY) * (draw.random() < SHARE_DELAYED) for _ in steps]
    for number, (step, delay) in enumerate(zip(steps, delays, strict=True)):
        if not meeting.wait(thread, number, delay):
            return
        _repeat(step, trial.repeats, results[number])


def _go_on(trial: Trial, steps: Sequence[Step], results: Sequence[list[Any]], meeting: Meeting, thread: int) -> None:
    """Make a thread's calls without waiting for others, except that all begin together."""
    meeting.wait(thread, 0, random.Random(trial.seed * 64 + thread).randrange(LONGEST_DELAY))
    with meeting.stopped_at_times(once=trial.kind == "first") as every:
        left = every
        for step, mine in zip(steps, results, strict=True):
            if not meeting.staller:
                _repeat(step, trial.repeats, mine)
                continue
            for _ in range(trial.repeats):
                _repeat(step, 1, mine)
                left -= 1
                if not left:
                    meeting.staller.release()
                    left = every


# Trials in which only a crash or a hang counts.

def run_mix(trial: Trial, calls: Sequence[RepeatableCall], more: Callable[[Any], Mapping[str, Callable[[], Any]]],
            pipe: StallPipe, write: WriteRecord) -> None:
    """Make all of some calls from all threads, on shared objects and with few different arguments.

    Args:
        trial: `rounds` is the number of calls after which a thread looks at the clock.  Threads that take turns make
            so many once, and of all functions.
        calls: Those of one module, or of one type.
        more: Returns calls that read or iterate over an object, by their names.
        pipe: Where threads are stopped.
        write: Writes a sign of life.
    """
    draw = random.Random(trial.seed)
    keys = draw.choice(KEYS)
    shared: dict[type, Any] = {}
    made = []
    for call in drawn(trial, calls) if trial.order == "together" else calls:
        scope = call.scope()
        receiver = call.receiver(scope)
        if receiver is not None:
            receiver = shared.setdefault(type(receiver), receiver)
        made.append((call, scope, receiver))
    named = [*chain.from_iterable(more(receiver).items() for receiver in shared.values())]
    readers = [reader for _, reader in named]
    if named:
        write(beside=[*dict.fromkeys(name for name, _ in named)])

    def some_calls(favourite: int) -> Iterator[Callable[[], Any]]:
        for _ in range(trial.rounds):
            if readers and draw.random() < SHARE_OF_READERS:
                yield draw.choice(readers)
                continue
            call, scope, receiver = made[favourite] if draw.random() < SHARE_OF_ROLE else draw.choice(made)
            args, kwargs = call.arguments(scope)
            yield with_fresh_arguments(call.function(scope, receiver),
                                       _colliding(args, keys, draw) if trial.vary else args, kwargs)

    if trial.order != "together":
        run_in_turn([[partial(_call_and_write, each, write) for each in some_calls(draw.randrange(len(made)))]
                     for _ in range(trial.threads)], trial.order)
        return
    run_together([partial(_loop, [*some_calls(draw.randrange(len(made)))]) for _ in range(trial.threads)], pipe,
                 SignsOfLife(write, _passes), stalls=trial.stalls, seed=trial.seed)


def drawn[Call](trial: Trial, calls: Sequence[Call]) -> list[Call]:
    """Return the calls of a mix: few of many, so that each pair of them meets in some trial."""
    draw = random.Random(f"functions {trial.seed}")
    return draw.sample(calls, min(len(calls), draw.choice(FUNCTIONS)))


def _colliding(args: tuple[Any, ...], keys: int, draw: random.Random) -> tuple[Any, ...]:
    """Return arguments of which the first is one of few keys, and other texts are long or short values of their own.

    A freed object whose place the next one of its size takes looks alive.
    """
    made = _made(args, draw.randrange(keys))
    return (*made[:1], *(varied(each, draw.randrange(10**6)) * draw.choice(LENGTHS) if type(each) in {str, bytes}
                         else each for each in made[1:]))


def _call_and_write(call: Callable[[], Any], write: WriteRecord) -> None:
    """Make a call and write a sign of life."""
    with suppress(Exception):   # of the project's code
        call()
    write()


def _loop(calls: Sequence[Callable[[], Any]], meeting: Meeting, thread: int) -> None:
    """Make the calls again and again, keeping no result alive: it may be freed by another thread."""
    meeting.wait(thread, 0)
    until, at_most = time.thread_time() + LOOP_SECONDS, time.monotonic() + MOST_LOOP_SECONDS
    with meeting.stopped_at_times() as every:
        left = every or -1
        while time.thread_time() < until and time.monotonic() < at_most:
            for call in calls:
                try:  # noqa: SIM105  a `with` takes longer
                    call()
                except Exception:  # noqa: BLE001, S110  of the project's code
                    pass
                left -= 1
                if not left and meeting.staller:
                    meeting.staller.release()
                    left = every
            meeting.passes[thread] += 1


def _passes(meeting: Meeting) -> int:
    return sum(meeting.passes)


def run_callers(trial: Trial, call: RepeatableCall, pipe: StallPipe, write: WriteRecord) -> None:
    """Make one call from all threads but one, on containers of the caller's that this one changes meanwhile.

    With one thread, nothing changes them.
    """
    scope = call.scope()
    receiver = call.receiver(scope)
    function = call.function(scope, receiver)
    args, kwargs = call.arguments(scope)
    containers = [(each, fresh(each)) for each in (*args, *kwargs.values(), receiver) if isinstance(each, MUTABLE)]
    if containers and trial.threads > 1:
        kinds = dict.fromkeys(type(each).__name__ for each, _ in containers)
        write(beside=[f"changes of its {name}" for name in kinds])
    changes: list[Callable[[], Any]] = [partial(_change, each, original) for each, original in containers]
    uses: list[Callable[[], Any]] = [partial(function, *args, **kwargs)] * trial.rounds
    loops = [changes, *[uses] * (trial.threads - 1)] if trial.threads > 1 else [uses]
    run_together([partial(_loop, each) for each in loops], pipe, SignsOfLife(write, _passes), stalls=trial.stalls,
                 seed=trial.seed)


def _change(container: Any, original: Any) -> None:
    """Replace, remove and add elements, so that those that were in it are freed."""
    new = fresh(original)
    if isinstance(container, list):
        if new:
            container[0] = new[0]
        container.append(new[0] if new else None)
        container.pop()
        container.clear()
        container.extend(new)
    elif isinstance(container, dict):
        container.update(new)
        container["gilscope"] = None
        del container["gilscope"]
        container.clear()
        container.update(new)
    elif isinstance(container, set):
        container.clear()
        container.update(new)
    else:
        container.append(0)
        container.pop()
        container.clear()
        container.extend(new)
