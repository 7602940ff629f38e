"""Repeat trials: which there are of a project's calls, what they give in one thread, and what fails in several.

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

from gilscope.toolkit.hammer.forks import forked
from gilscope.toolkit.hammer.trials import JUDGED, Trial, difference, drawn, run_callers, run_judged, run_mix
from gilscope.toolkit.hammer.values import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.children.child import Journal
    from gilscope.toolkit.hammer.candidates import CallCandidate
    from gilscope.toolkit.hammer.forks import ForkEnding
    from gilscope.toolkit.hammer.stalls import StallPipe
    from gilscope.toolkit.hammer.targets import RepeatableCall

MOST_OBSERVERS = 8      # calls that show the state of an object, or of a module
HANG_SECONDS = 10.0     # a trial takes a fiftieth of a second of calls
LOOP_SECONDS = 0.015    # of a thread's calls in a trial
MOST_ROUNDS, MOST_REPEATS, MOST_MIXED = 1000, 8000, 200
ENOUGH = 3              # failures of one kind in a cell; then the time goes to others


@dataclass(kw_only=True)
class TrialCell:
    """A trial that is repeated, and what came of it."""

    trial: Trial
    candidates: list[CallCandidate]
    expected: dict[str, Any] | None = None     # None: results are not compared
    ready: bool = False
    trials: int = 0
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


def cells_of_all(candidates: Sequence[CallCandidate], threads: int) -> Iterator[TrialCell]:
    """Yield trials in order, so that each function comes soon, and what fails most often comes first."""
    base = Trial(kind="same", threads=threads, rounds=1)
    functions = [each for each in candidates if not each.made]
    groups = [functions, *([each for each in candidates if each.made == made]
                           for made in dict.fromkeys(each.made for each in candidates if each.made))]
    for group in filter(None, groups):
        rounds = _many(sum(each.seconds for each in group) / len(group), MOST_MIXED)
        yield TrialCell(trial=replace(base, kind="mix", rounds=rounds, vary=any(each.vary for each in group)),
                   candidates=group)
    first = {each.name: each for each in reversed(candidates)}
    for some in ([*first.values()], [each for each in candidates if first[each.name] is not each]):
        # One cell of each function, then the next one of each: the time may not suffice for all.
        for row in zip_longest(*(_cells_of(each, base) for each in some)):
            yield from filter(None, row)


def _cells_of(each: CallCandidate, base: Trial) -> Iterator[TrialCell]:
    both = each.seconds + each.setup_seconds + 5e-6   # with the making of arguments
    rounds = _many(both, MOST_ROUNDS)
    # More threads than cores would wait for a core in each round in which they meet.
    fewer = replace(base, threads=min(base.threads, max(2, len(os.sched_getaffinity(0)))))
    yield TrialCell(trial=replace(base, kind="same", repeats=_many(each.seconds, MOST_REPEATS)), candidates=[each])
    if not each.made:
        yield TrialCell(trial=replace(base, kind="first"), candidates=[each])
    else:
        objects = replace(fewer, kind="objects", rounds=rounds, repeats=2, vary=each.vary)
        yield TrialCell(trial=objects, candidates=[each])
    if each.vary:
        keys = replace(fewer, kind="keys", rounds=rounds, repeats=2, vary=True)
        yield TrialCell(trial=keys, candidates=[each])
        yield TrialCell(trial=replace(keys, meet=False, threads=base.threads), candidates=[each])
        yield TrialCell(trial=replace(base, kind="apart", rounds=rounds, vary=True, meet=False), candidates=[each])
    if each.containers:
        yield TrialCell(trial=replace(base, kind="callers", rounds=_many(each.seconds, MOST_MIXED)), candidates=[each])


def sized(cell: TrialCell, sizes: dict[str, list[int]]) -> TrialCell:
    """Return a cell with as many rounds as another process has made, so that their results can be compared."""
    if cell.key in sizes:
        rounds, repeats = sizes[cell.key]
        cell.trial = replace(cell.trial, rounds=rounds, repeats=repeats)
    return cell


def _many(seconds: float, most: int) -> int:
    return max(1, min(most, int(LOOP_SECONDS / max(seconds, 1e-9))))


# The trials.

class _Half:
    """Cells that share time, and how much they have taken."""

    def __init__(self, cells: Iterable[TrialCell]) -> None:
        self.cells = deque(cells)
        self.seconds = 0.0


def hammer_cells(cells: Sequence[TrialCell], deadline: float, seed: int, journal: Journal) -> None:
    """Repeat the cells until the time is up, or each has failed often enough.

    Those whose results are compared are many, and those that may only crash take longer: each half gets half the time.
    """
    draw = random.Random(seed)
    halves = [_Half(cell for cell in cells if cell.trial.kind in JUDGED),
              _Half(cell for cell in cells if cell.trial.kind not in JUDGED)]
    while (left := [half for half in halves if half.cells]) and time.monotonic() < deadline:
        half = min(left, key=lambda each: each.seconds)
        began = time.monotonic()
        cell = half.cells.popleft()
        # A cell that fails in one thread, too, is of no use.
        cell.ready = cell.ready or prepare(cell, cells, journal)
        if cell.ready:
            _one(cell, replace(cell.trial, seed=draw.randrange(2**30), stalls=cell.trials % 2 == 0), cells, journal)
            if max(cell.failures.values(), default=0) < ENOUGH:
                half.cells.append(cell)
        half.seconds += time.monotonic() - began


def prepare(cell: TrialCell, cells: Sequence[TrialCell], journal: Journal) -> bool:
    """Make a cell's calls in one thread, in several orders; return False if that fails."""
    if cell.trial.kind not in JUDGED:
        records, ending = forked(partial(_run, replace(cell.trial, threads=1), cell, cells), HANG_SECONDS)
        return ending.kind == "done" and bool(records)
    results = []
    for trial in cell.trial.references():
        records, ending = forked(partial(_run, trial, cell, cells), HANG_SECONDS)
        if ending.kind != "done" or not records:
            journal.write("alone", key=cell.key, names=cell.names, ending=ending.reason)
            return False
        results.append(records[0]["results"])
    if all(difference(results[0], each, objects=False) is None for each in results[1:]):
        cell.expected = results[0]
        if any(difference(results[0], each) for each in results[1:]):   # equal, but not one object
            cell.expected = {**results[0], "rounds": [{**each, "one_object": False} for each in results[0]["rounds"]]}
    return True


def _run(
    trial: Trial, cell: TrialCell, cells: Sequence[TrialCell], write: Callable[..., None], pipe: StallPipe,
) -> None:
    """Run a trial in this process and write its results."""
    first = cell.candidates[0]
    if trial.kind == "mix":
        run_mix(trial, [each.call for each in cell.candidates], _readers, pipe)
        write(results=None)
    elif trial.kind == "callers":
        run_callers(replace(trial, threads=max(2, trial.threads)), first.call, pipe)
        write(results=None)
    else:
        write(results=run_judged(trial, first.call, lambda receiver: _state(first, receiver, cells), pipe).plain())


def _one(cell: TrialCell, trial: Trial, cells: Sequence[TrialCell], journal: Journal) -> None:
    """Make one trial from several threads and write what it shows."""
    records, ending = forked(partial(_run, trial, cell, cells), HANG_SECONDS)
    cell.trials += 1
    cell.called.update(*(each.reached for each in _called(cell, trial)))
    if ending.kind in {"crash", "hang"}:
        _failed(cell, trial, journal, ending.kind, ending=ending)
    elif records and cell.expected is not None and (
            found := difference(cell.expected, records[0]["results"])):
        _failed(cell, trial, journal, found["what"], found=found)


def _called(cell: TrialCell, trial: Trial) -> list[CallCandidate]:
    """Return the calls of a trial's threads."""
    return drawn(trial, cell.candidates) if trial.kind == "mix" else cell.candidates


def _failed(cell: TrialCell, trial: Trial, journal: Journal, what: str, *, found: dict[str, Any] | None = None,
            ending: ForkEnding | None = None) -> None:
    cell.failures[what] = cell.failures.get(what, 0) + 1
    called = _called(cell, trial)
    journal.write("failure", key=cell.key, kind=trial.kind, names=sorted({each.name for each in called}), what=what,
                  found=found, calls=[each.call.recipe.shown for each in called][:MOST_OBSERVERS],
                  places=[each.call.recipe.place for each in called][:MOST_OBSERVERS],
                  threads=trial.threads, stalls=trial.stalls, seed=trial.seed,
                  reason=ending.reason if ending else "", output=ending.output if ending else "")


def _readers(receiver: Any) -> list[Callable[[], Any]]:
    """Return calls that read or iterate over an object, as its type allows."""
    kind = type(receiver)
    found: list[Callable[[], Any]] = [lambda: repr(receiver)]
    if hasattr(kind, "__len__"):
        found.append(lambda: len(receiver))
    if hasattr(kind, "__iter__"):
        found.append(lambda: [*zip(receiver, range(100))])  # noqa: B905  it may have no end
    if hasattr(kind, "__buffer__"):
        found.append(lambda: bytes(memoryview(receiver)))
    return [*found, *(partial(getattr, receiver, name) for name in _attributes(kind))]


def _attributes(kind: type) -> list[str]:
    """Return the public attributes of a type whose values C code computes or stores."""
    return [name for name, member in list(vars(kind).items()) if not name.startswith("_")
            and type(member).__name__ in {"getset_descriptor", "member_descriptor", "property"}]


def _state(first: CallCandidate, receiver: Any, cells: Sequence[TrialCell]) -> list[str]:
    """Return texts of the state of an object, or of a module, as other calls of the project's tests show it."""
    found = []
    if receiver is not None:
        kind = type(receiver)
        found += [f"{name} is {_outcome(partial(getattr, receiver, name))}" for name in _attributes(kind)]
        if hasattr(kind, "__len__"):
            found.append(f"len() is {_outcome(lambda: len(receiver))}")
    others = {id(each): each for cell in cells for each in cell.candidates
              if each.made == first.made and each.name != first.name}
    return [*found, *(f"{each.call.recipe.shown} gives {_outcome(partial(_again, each.call, receiver))}"
                      for each in [*others.values()][:MOST_OBSERVERS])]


def _again(call: RepeatableCall, receiver: Any) -> Any:
    scope = call.scope()
    args, kwargs = call.arguments(scope)
    return call.function(scope, receiver)(*args, **kwargs)


def _outcome(call: Callable[[], Any]) -> str:
    try:
        return as_text(call())
    except Exception as error:  # noqa: BLE001  a result like any other
        return f"raised {type(error).__name__}"
