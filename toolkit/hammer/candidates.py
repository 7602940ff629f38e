"""Find the calls of compiled functions that work alone: from tests, doctests and docstrings, few of each function.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from gilscope.toolkit.hammer.calls import CallRecipe, calls_in_doctest, calls_in_file, is_inside
from gilscope.toolkit.hammer.targets import MUTABLE, ReachedFunctions, RepeatableCall, owner
from gilscope.toolkit.hammer.values import as_text, can_vary
from gilscope.toolkit.processes.forks import Fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from gilscope.toolkit.hammer.targets import DefinedCallables
    from gilscope.toolkit.processes.forks import WriteRecord

FIND_SECONDS = 20.0     # for finding calls and trying each alone; what that leaves out is said
SHARE_FOR_READING = 0.5   # of these, for reading files
SHARE_FOR_IMPORTS = 0.75  # of these, until when imports of calls are run; the rest is for trying
MOST_RECIPES = 4        # of one function
TRY_SECONDS = 5.0       # for one call alone
MOST_READ = 2**22       # bytes of a file


@dataclass(kw_only=True)
class CallCandidate:
    """A call that was tried alone."""

    call: RepeatableCall
    name: str                 # "Counter.add"
    seconds: float            # of the call
    text_seconds: float       # of making a text of its result, by which it is compared
    setup_seconds: float
    vary: bool                # with other arguments it does not fail
    containers: bool          # it takes a container of the caller's
    made: str                 # the type of the object whose method it is, or ""
    reached: frozenset[str]   # of the compiled functions
    waits: bool = False       # for other threads, as a lock does; known once it has been tried


@dataclass(kw_only=True)
class FailedCall:
    """A call that did not work alone."""

    recipe: CallRecipe
    name: str        # "Counter.add"
    reason: str      # "ValueError: ...", "crashed with SIGSEGV"


@dataclass(kw_only=True)
class FoundCalls:
    """The calls that were found."""

    candidates: list[CallCandidate]
    failed: list[FailedCall]
    complete: bool            # all were found and tried


def _recipes(job: dict[str, Any], modules: Sequence[str]) -> Iterator[CallRecipe]:
    own = {*job["own"], *(name.partition(".")[0] for name in job["modules"] if not is_inside(name, job["own"]))}
    for file, place in job["files"]:
        try:
            with open(file, "rb") as source:
                text = source.read(MOST_READ).decode(errors="replace")
        except OSError:
            continue
        if file.endswith(".py"):
            yield from calls_in_file(text, place, own)
        yield from calls_in_doctest(text, place, own)
    loaded = {name: module for name, module in list(sys.modules.items())
              if is_inside(name, own) and getattr(module, "__dict__", None) is not None}
    for name in sorted({*loaded, *modules}):
        for place, text in _docstrings(sys.modules[name]):
            yield from calls_in_doctest(text, place, own, name, vars(sys.modules[name]))


def _docstrings(module: Any) -> Iterator[tuple[str, str]]:
    """Yield the docstrings with examples, each with the name of what it documents."""
    things = {module.__name__: module}
    for name, each in list(vars(module).items()):
        if owner(each) == module.__name__:
            things[f"{module.__name__}.{name}"] = each
            if isinstance(each, type):
                things |= {f"{module.__name__}.{name}.{own}": member for own, member in list(vars(each).items())}
    for place, each in things.items():
        text = getattr(each, "__doc__", None)
        if isinstance(text, str) and ">>>" in text:
            yield place, text


def find_candidates(
    job: dict[str, Any], modules: Sequence[str], defined: DefinedCallables, seconds: float, *,
    try_seconds: float = TRY_SECONDS, clock: Callable[[], float] = time.monotonic,
) -> FoundCalls:
    """Return the calls that work alone and reach functions of `modules`, few of each.

    Args:
        job: That of `child`.
        modules: Those of the job that have been imported.
        defined: Their functions.
        seconds: After which finding ends.
        try_seconds: For one call alone.
        clock: Tells the seconds.
    """
    began = clock()
    # In a fork: how long a file takes cannot be said before, and what reading leaves in memory ends with it.
    found, ending = Fork(lambda write: _write_recipes(write, job, modules)).result(seconds * SHARE_FOR_READING)
    complete = ending.kind == "done"
    calls, seen = [], set()
    for recipe in map(CallRecipe.from_plain, found):
        if recipe.same_as in seen:
            continue
        if clock() > began + seconds * SHARE_FOR_IMPORTS:
            complete = False
            break
        seen.add(recipe.same_as)
        try:
            calls.append(RepeatableCall(recipe))
        except Exception:  # noqa: BLE001, S112  an import that fails here; the tests say so
            continue
    calls.sort(key=lambda each: len("".join(each.recipe.setup)) + len(each.recipe.shown))
    tried = _Tries(calls, defined, lambda: began + seconds - clock(), try_seconds)
    count: dict[str, int] = {}
    candidates = []
    for candidate in tried.successes():
        count[candidate.name] = count.get(candidate.name, 0) + 1
        if count[candidate.name] <= MOST_RECIPES:
            candidates.append(candidate)
    return FoundCalls(candidates=candidates, failed=[*tried.failed.values()], complete=complete and tried.complete)


def _write_recipes(write: WriteRecord, job: dict[str, Any], modules: Sequence[str]) -> None:
    for recipe in _recipes(job, modules):
        write(**recipe.plain())


class _Tries:
    """Tries each call alone, in as few forks as their crashes and hangs allow; again if it fails, after all others.

    Some need what another leaves in the module: `recall("a")` after `remember("a", "text")`.
    """

    def __init__(self, calls: Sequence[RepeatableCall], defined: DefinedCallables, left: Callable[[], float],
                 try_seconds: float) -> None:
        self._calls = calls
        self._defined = defined
        self._seconds_left = left
        self._try_seconds = try_seconds
        self.complete = False    # all have been tried
        self.failed: dict[int, FailedCall] = {}    # by their index

    def successes(self) -> Iterator[CallCandidate]:
        """Yield those that work and reach compiled functions."""
        left = [*range(len(self._calls)), *range(len(self._calls))]
        while left:
            if (seconds := self._seconds_left()) <= 0:
                return
            records, ending = Fork(partial(self._try_all, left)).result(seconds, silence=self._try_seconds)
            names = {record["calling"]: record["name"] for record in records if "calling" in record}
            for record in records:
                if "error" in record:
                    self._note(record["tried"], names, record["error"])
                if "tried" in record and record["reached"]:
                    self.failed.pop(record["tried"], None)
                    yield CallCandidate(call=self._calls[record["tried"]], name=record["name"],
                                        seconds=record["seconds"], setup_seconds=record["setup_seconds"],
                                        text_seconds=record["text_seconds"],
                                        vary=record["vary"], containers=record["containers"], made=record["made"],
                                        reached=frozenset(record["reached"]))
            begun = [record["begun"] for record in records if "begun" in record]
            if ending.kind == "done" or not begun:
                self.complete = ending.kind == "done"
                return
            fine, stopped = {record["tried"] for record in records if record.get("reached")}, left[begun[-1]]
            self._note(stopped, names, f"crashed with {ending.reason}" if ending.kind == "crash" else ending.reason)
            left = [number for number in left[begun[-1] + 1:] if number not in fine and number != stopped]
        self.complete = True

    def _note(self, number: int, names: Mapping[int, str], reason: str) -> None:
        recipe = self._calls[number].recipe
        self.failed[number] = FailedCall(recipe=recipe, name=names.get(number, recipe.callee), reason=reason)

    def _try_all(self, numbers: Sequence[int], write: WriteRecord) -> None:
        fine = set()
        for index, number in enumerate(numbers):
            if number not in fine:
                write(begun=index)
                tried = _try(self._calls[number], self._defined, partial(write, calling=number))
                if tried["reached"]:
                    fine.add(number)
                write(tried=number, **tried)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _try(call: RepeatableCall, defined: DefinedCallables, told: WriteRecord) -> dict[str, Any]:
    """Return the functions that a call reaches, and its seconds; no functions if it fails.

    Writes its name before the call, which may crash.
    """
    try:
        began = time.perf_counter()
        scope = call.scope()
        receiver = call.receiver(scope)
        setup_seconds = time.perf_counter() - began
        function = call.function(scope, receiver)
        name = defined.name(function) or call.recipe.callee
        told(name=name)
        args, kwargs = call.arguments(scope)
        with ReachedFunctions(defined) as reached:
            result = function(*args, **kwargs)
        text_seconds = min(_seconds(partial(as_text, result)) for _ in range(3))
        del result
        began = time.perf_counter()
        for _ in range(3):
            with suppress(Exception):   # what another call of it gets is for the trials to compare
                function(*args, **kwargs)
        seconds = (time.perf_counter() - began) / 3
    except Exception as error:  # noqa: BLE001  it cannot be called so
        return {"reached": [], "error": f"{type(error).__name__}: {error}"}
    return {"reached": [*reached.names], "seconds": seconds, "setup_seconds": setup_seconds,
            "text_seconds": text_seconds, "name": name,
            "vary": any(map(can_vary, args[:1])), "made": "" if receiver is None else type(receiver).__qualname__,
            "containers": any(isinstance(each, MUTABLE) for each in (*args, *kwargs.values(), receiver))}
