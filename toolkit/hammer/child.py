"""Make many short trials of a project's compiled functions, each in a fork of this process; a child of `hammering`.

Or find a call of each function that a module offers, for `offered_calls`.

This process imports the modules once and calls none of their functions, so each trial begins with the state that an
import leaves, and costs a fork.  A crash or a hang of a trial is a result.  Runs in the build under test.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.children.child import Journal, begin
from gilscope.toolkit.hammer.candidates import FIND_SECONDS, find_candidates
from gilscope.toolkit.hammer.repeated_trials import hammer_trials, prepare, repeated_trials_of, sized
from gilscope.toolkit.hammer.targets import DefinedCallables, full_name, home, public_callables
from gilscope.toolkit.hammer.trial_budget import TrialBudget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.hammer.calls import CallRecipe


def main(find_seconds: float = FIND_SECONDS) -> None:
    """Hammer the modules of the job until its time is up, after finding their calls in so many seconds."""
    job, journal, modules = _imported()
    journal.write("imported", modules=modules, gil=_gil_is_on(), threads=len(os.listdir("/proc/self/task")))
    defined = DefinedCallables(modules)
    found = find_candidates(job, modules, defined, find_seconds)
    budget = TrialBudget(job["seconds"], job["limit"])
    called = set().union(*(each.reached for each in found.candidates))
    journal.write("called", called=[name for name in defined.public if name in called],
                  left_out=[name for name in defined.public if name not in called], complete=found.complete)
    trials = [sized(each, job["sizes"]) for each in repeated_trials_of(found.candidates, job["threads"])]
    if job["confirm"]:
        trials = [each for each in trials if each.key in job["confirm"]]
        for each in trials:
            each.ready = prepare(each, trials, journal)
    else:
        hammer_trials(trials, budget, job["seed"], journal)
        if missing := budget.missing():
            journal.write("short", missing=missing)
    for each in trials:
        if each.ready:
            journal.write("repeated", key=each.key, trials=each.trials, called=sorted(each.called),
                          size=[each.trial.rounds, each.trial.repeats],
                          expected=_digest(each.expected), one_object=_one_object(each.expected))
    journal.write("end")


def find_calls() -> None:
    """Find a call of each function, type and method that the module of the job offers, and write it."""
    job, journal, modules = _imported()
    if not modules:
        return
    offered = dict(public_callables(sys.modules[modules[0]]))
    owners = sorted({*modules, *filter(None, map(home, offered.values()))})
    defined = DefinedCallables(owners)
    found = find_candidates(job, owners, defined, FIND_SECONDS)
    longest = {each.name: each for each in sorted(found.candidates, key=lambda each: each.seconds)
               if not _is_foreign(each.name, each.call.recipe)}
    failed = {each.name: each for each in found.failed if not _is_foreign(each.name, each.recipe)}
    for name, each in offered.items():
        known = defined.name(each) or full_name(each)
        if call := longest.get(known):
            recipe = call.call.recipe
            journal.write("offered", name=name, shown=recipe.shown, place=recipe.place, recipe=recipe.plain())
        elif problem := failed.get(known):
            recipe = problem.recipe
            journal.write("offered", name=name, shown=recipe.shown, place=recipe.place, problem=problem.reason)
        else:
            journal.write("offered", name=name)
    journal.write("end", complete=found.complete, gil=_gil_is_on())


def _is_foreign(name: str, recipe: CallRecipe) -> bool:
    """Return True for a method of a type that the modules do not define: its name is that of the method alone."""
    return bool(recipe.receiver) and "." not in name


def _imported() -> tuple[dict[str, Any], Journal, list[str]]:
    """Return the job, its journal, and its modules that can be imported."""
    job = begin()
    journal = Journal(job, 0)
    sys.path[:0] = [each for each in job["first"] if each not in sys.path]
    for name in job["modules"]:
        try:
            __import__(name)
        except BaseException as error:  # noqa: BLE001  of the project's code; the others may load
            journal.write("failed", module=name, error=f"{type(error).__name__}: {error}")
    return job, journal, [name for name in job["modules"] if name in sys.modules]


def _gil_is_on() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _one_object(expected: dict[str, Any] | None) -> bool:
    """Return True if equal calls always give one object in one thread."""
    return expected is not None and all(each["one_object"] for each in expected["rounds"])


def _digest(expected: dict[str, Any] | None) -> str:
    """Return a text by which another process tells whether it expects the same."""
    if expected is None:
        return ""
    return " ".join([*(each["hash"] for each in expected["rounds"]), *(each["value"] for each in expected["state"])])
