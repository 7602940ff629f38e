"""Make many short trials of a project's compiled functions, each in a fork of this process; a child of `hammering`.

This process imports the modules once and calls none of their functions, so each trial begins with the state that an
import leaves, and costs a fork.  A crash or a hang of a trial is a result.  Runs in the build under test.
"""

from __future__ import annotations

import os
import sys
import time

from gilscope.toolkit.children.child import Journal, begin
from gilscope.toolkit.hammer.candidates import find_candidates
from gilscope.toolkit.hammer.cells import cells_of_all, hammer_cells, prepare, sized
from gilscope.toolkit.hammer.targets import public_names

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
    deadline = time.monotonic() + job["seconds"]
    candidates = [*find_candidates(job, modules)]
    called = set().union(*(each.reached for each in candidates))
    public = public_names(modules)
    journal.write("called", called=[name for name in public if name in called],
                  left_out=[name for name in public if name not in called])
    cells = [sized(cell, job["sizes"]) for cell in cells_of_all(candidates, job["threads"])]
    if job["confirm"]:
        cells = [cell for cell in cells if cell.key in job["confirm"]]
        for cell in cells:
            cell.ready = prepare(cell, cells, journal)
    else:
        hammer_cells(cells, deadline, job["seed"], journal)
    for cell in cells:
        if cell.ready:
            journal.write("cell", key=cell.key, trials=cell.trials, called=sorted(cell.called),
                          size=[cell.trial.rounds, cell.trial.repeats],
                          expected=_digest(cell.expected), one_object=_one_object(cell.expected))
    journal.write("end")


def _one_object(expected: dict[str, Any] | None) -> bool:
    """Return True if equal calls always give one object in one thread."""
    return expected is not None and all(each["one_object"] for each in expected["rounds"])


def _digest(expected: dict[str, Any] | None) -> str:
    """Return a text by which another process tells whether it expects the same."""
    return "" if expected is None else " ".join([*(each["hash"] for each in expected["rounds"]), *expected["state"]])
