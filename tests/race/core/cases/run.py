"""Run the cases on the core in this process: `python -m tests.race.core.cases.run [names]`.

Needs nothing but the standard library, so that it runs on any build.  One line of JSON per case.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback

from gilscope.toolkit.race._core.build import load

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


def outcome(core, case):
    """Return "passed", "skipped: why" or the traceback of a case."""
    from tests.race.core.cases.world import World

    world = World(core)
    try:
        skip = case(world)
    except BaseException:  # noqa: BLE001  a case's anything
        return traceback.format_exc()
    else:
        return f"skipped: {skip}" if isinstance(skip, str) else "passed"
    finally:
        core.stop()


def main(arguments):
    try:
        core = load()
    except Exception as error:
        print(json.dumps({"unavailable": f"{type(error).__name__}: {error}"}))
        if type(error).__name__ in {"UnavailableError", "ModuleNotFoundError"}:
            return
        raise
    core.track_locks()
    for name, case in cases().items():
        if not arguments or any(part in name for part in arguments):
            print(json.dumps({"case": name}), flush=True)
            print(json.dumps({"case": name, "outcome": outcome(core, case)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
