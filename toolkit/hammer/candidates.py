"""Find the calls of compiled functions that work alone: from tests, doctests and docstrings, few of each function.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from gilscope.toolkit.hammer.calls import calls_in_doctest, calls_in_file
from gilscope.toolkit.hammer.forks import forked
from gilscope.toolkit.hammer.targets import MUTABLE, ReachedFunctions, RepeatableCall, full_name, owner
from gilscope.toolkit.hammer.values import can_vary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.hammer.calls import CallRecipe
    from gilscope.toolkit.hammer.stalls import StallPipe

MOST_RECIPES = 4        # of one function
TRY_SECONDS = 5.0       # for one call alone
MOST_READ = 2**22       # bytes of a file


@dataclass(kw_only=True)
class CallCandidate:
    """A call that was tried alone."""

    call: RepeatableCall
    name: str                 # "Counter.add"
    seconds: float            # of the call
    setup_seconds: float
    vary: bool                # with other arguments it does not fail
    containers: bool          # it takes a container of the caller's
    made: str                 # the type of the object whose method it is, or ""
    reached: frozenset[str]   # of the compiled functions


def _recipes(job: dict[str, Any], modules: Sequence[str]) -> Iterator[CallRecipe]:
    own = {name.partition(".")[0] for name in (*job["modules"], *job["own"])}
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
              if name.partition(".")[0] in own and getattr(module, "__dict__", None) is not None}
    for name in sorted({*loaded, *modules}):
        for text in _docstrings(sys.modules[name]):
            yield from calls_in_doctest(text, name, own, name, vars(sys.modules[name]))


def _docstrings(module: Any) -> Iterator[str]:
    things = [module, *(each for each in list(vars(module).values()) if owner(each) == module.__name__)]
    for each in things:
        members = list(vars(each).values()) if isinstance(each, type) else []
        for one in (each, *members):
            text = getattr(one, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                yield text


def find_candidates(job: dict[str, Any], modules: Sequence[str]) -> Iterator[CallCandidate]:
    """Yield the calls that work alone and reach compiled functions of the project, few of each."""
    calls, seen = [], set()
    for recipe in _recipes(job, modules):
        if recipe.same_as in seen:
            continue
        seen.add(recipe.same_as)
        try:
            calls.append(RepeatableCall(recipe))
        except Exception:  # noqa: BLE001, S112  an import that fails here; the tests say so
            continue
    calls.sort(key=lambda each: len("".join(each.recipe.setup)) + len(each.recipe.shown))
    count: dict[str, int] = {}
    for candidate in _tried(calls, modules):
        count[candidate.name] = count.get(candidate.name, 0) + 1
        if count[candidate.name] <= MOST_RECIPES:
            yield candidate


def _tried(calls: Sequence[RepeatableCall], modules: Sequence[str]) -> Iterator[CallCandidate]:
    """Try each call alone, in as few forks as their crashes and hangs allow; again if it fails, after all others.

    Some need what another leaves in the module: `recall("a")` after `remember("a", "text")`.
    """
    left = [*range(len(calls)), *range(len(calls))]
    while left:
        def try_all(write: Callable[..., None], _: StallPipe, numbers: tuple[int, ...] = tuple(left)) -> None:
            fine = set()
            for index, number in enumerate(numbers):
                if number not in fine:
                    write(begun=index)
                    tried = _try(calls[number], modules)
                    if tried["reached"]:
                        fine.add(number)
                    write(tried=number, **tried)

        records, ending = forked(try_all, TRY_SECONDS, each=True)
        for record in records:
            if "tried" in record and record["reached"]:
                yield CallCandidate(call=calls[record["tried"]], name=record["name"], seconds=record["seconds"],
                                setup_seconds=record["setup_seconds"], vary=record["vary"],
                                containers=record["containers"], made=record["made"],
                                reached=frozenset(record["reached"]))
        begun = [record["begun"] for record in records if "begun" in record]
        if ending.kind == "done" or not begun:
            return
        fine, stopped = {record["tried"] for record in records if record.get("reached")}, left[begun[-1]]
        left = [number for number in left[begun[-1] + 1:] if number not in fine and number != stopped]


def _try(call: RepeatableCall, modules: Sequence[str]) -> dict[str, Any]:
    """Return the C functions that a call reaches, and its seconds; no functions if it fails."""
    try:
        began = time.perf_counter()
        scope = call.scope()
        receiver = call.receiver(scope)
        setup_seconds = time.perf_counter() - began
        function = call.function(scope, receiver)
        args, kwargs = call.arguments(scope)
        with ReachedFunctions(modules) as reached:
            function(*args, **kwargs)
        began = time.perf_counter()
        for _ in range(3):
            function(*args, **kwargs)
        seconds = (time.perf_counter() - began) / 3
    except Exception as error:  # noqa: BLE001  it cannot be called so
        return {"reached": [], "error": f"{type(error).__name__}: {error}"}
    direct = owner(function) in modules
    return {"reached": [*reached.names], "seconds": seconds, "setup_seconds": setup_seconds,
            "name": full_name(function) if direct else call.recipe.callee,
            "vary": any(map(can_vary, args[:1])), "made": "" if receiver is None else type(receiver).__qualname__,
            "containers": any(isinstance(each, MUTABLE) for each in (*args, *kwargs.values(), receiver))}
