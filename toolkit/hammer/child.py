"""Make many short trials of a project's compiled functions, each in a fork of this process; a child of `hammering`.

This process imports the modules once and calls none of their functions, so each trial begins with the state that an
import leaves, and costs a fork.  A crash or a hang of a trial is a result.  Runs in the build under test.
"""

from __future__ import annotations

import os
import sys
import time

from gilscope.toolkit.children.child import Journal, begin
from gilscope.toolkit.hammer.candidates import FIND_SECONDS, find_candidates
from gilscope.toolkit.hammer.repeated_trials import hammer_trials, prepare, repeated_trials_of, sized
from gilscope.toolkit.hammer.targets import CompiledCallables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Hammer the modules of the job until its time is up."""
    job = begin()
    journal = Journal(job, 0)
    sys.path[:0] = [each for each in job["first"] if each not in sys.path]
    for name in job["modules"]:
        try:
            __import__(name)
        except BaseException as error:  # noqa: BLE001  of the project's code; the others may load
            journal.write("failed", module=name, error=f"{type(error).__name__}: {error}")
    modules = [name for name in job["modules"] if name in sys.modules]
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    journal.write("imported", modules=modules, gil=gil, threads=len(os.listdir("/proc/self/task")))
    candidates, complete = find_candidates(job, modules, FIND_SECONDS)
    deadline = time.monotonic() + job["seconds"]
    called = set().union(*(each.reached for each in candidates))
    public = CompiledCallables(modules).public
    journal.write("called", called=[name for name in public if name in called],
                  left_out=[name for name in public if name not in called], complete=complete)
    trials = [sized(each, job["sizes"]) for each in repeated_trials_of(candidates, job["threads"])]
    if job["confirm"]:
        trials = [each for each in trials if each.key in job["confirm"]]
        for each in trials:
            each.ready = prepare(each, trials, journal)
    else:
        hammer_trials(trials, deadline, job["seed"], journal)
    for each in trials:
        if each.ready:
            journal.write("repeated", key=each.key, trials=each.trials, called=sorted(each.called),
                          size=[each.trial.rounds, each.trial.repeats],
                          expected=_digest(each.expected), one_object=_one_object(each.expected))
    journal.write("end")


def _one_object(expected: dict[str, Any] | None) -> bool:
    """Return True if equal calls always give one object in one thread."""
    return expected is not None and all(each["one_object"] for each in expected["rounds"])


def _digest(expected: dict[str, Any] | None) -> str:
    """Return a text by which another process tells whether it expects the same."""
    if expected is None:
        return ""
    return " ".join([*(each["hash"] for each in expected["rounds"]), *(each["value"] for each in expected["state"])])
