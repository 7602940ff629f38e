"""Run the cases on one core in this process: `python -m tests.race.core.cases.run Python|C [names]`.

Needs nothing but the standard library, so that it runs on any build.  One line of JSON per case.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback

PARTS = ("first", "names", "items", "handoff", "structure", "whole", "spans", "getters", "locks", "lock_fidelity",
         "same", "uses", "overrides", "signals", "foreign_locks")


def cases():
    """Return name -> function of all cases, in order."""
    found = {}
    for name in PARTS:
        module = importlib.import_module(f"tests.race.core.cases.{name}")
        for case, function in vars(module).items():
            if case.startswith("case_") and function.__module__ == module.__name__:
                found[f"{name}:{case.removeprefix('case_')}"] = function
    return found


mistakes = []     # exceptions of the reference model's own, which a program would not hear of


def load(name):
    """Return the core of that name."""
    if name == "Python":
        from tests.race.model import ReferenceCore, monitor

        monitor.complain = lambda: mistakes.append(traceback.format_exc())
        return ReferenceCore()
    from gilscope.toolkit.race._core.build import load as load_c

    return load_c()


def outcome(core, case):
    """Return "passed", "skipped: why" or the traceback of a case."""
    from tests.race.core.cases.world import World

    world = World(core)
    try:
        skip = case(world)
    except BaseException:  # noqa: BLE001  a case's anything
        return traceback.format_exc()
    else:
        found = [text for text in mistakes if "RecursionError" not in text]
        mistakes.clear()
        if found:
            return found[0]
        return f"skipped: {skip}" if isinstance(skip, str) else "passed"
    finally:
        core.stop()


def main(arguments):
    try:
        core = load(arguments[0])
    except Exception as error:
        print(json.dumps({"unavailable": f"{type(error).__name__}: {error}"}))
        if type(error).__name__ in {"UnavailableError", "ModuleNotFoundError"}:
            return
        raise
    core.track_locks()
    for name, case in cases().items():
        if len(arguments) < 2 or any(part in name for part in arguments[1:]):
            print(json.dumps({"case": name}), flush=True)
            print(json.dumps({"case": name, "outcome": outcome(core, case)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
