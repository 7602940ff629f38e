"""Run every workload on one runner: python child.py RUNNER WORKERS.

Writes one JSON line for each, {"workload", "outcome", "reason"}; the outcome is "right", "skipped" or "failed".
"""

import json
import sys
import traceback
from importlib.util import find_spec
from itertools import groupby

from gilscope.runners.catalog import find
from gilscope.workloads.catalog import WORKLOADS

INTERPRETERS = {"subinterpreters", "interpreter-pool"}
REFUSED = "does not support loading in subinterpreters"  # CPython's words; packages wrap them in more


def skip_reason(runner, workload):
    """Return why the two do not go together here, or None."""
    if workload.shared and workload.shared not in runner.shares:
        return f"{runner.name} cannot share a {workload.shared}"
    awaits = runner.awaits and workload.async_task is not None
    for module in workload.async_requires if awaits else workload.requires:
        if find_spec(module) is None:
            return f"{module} is not installed"
    return None


def run_one(runner, pool, workload):
    """Return (outcome, reason) of a workload on an open pool."""
    task = workload.async_task if runner.awaits and workload.async_task else workload.task
    try:
        results = pool.map(task, workload.payloads("small"))
        workload.check("small", results)
    except Exception as error:  # noqa: BLE001 - becomes a report
        text = "".join(traceback.format_exception(error))
        if runner.name in INTERPRETERS and REFUSED in text:
            return "skipped", f"a module {REFUSED}"
        return "failed", text
    return "right", ""


def main(name, workers):
    runner = find(name)
    if reason := runner.unavailable():
        print(json.dumps({"unavailable": reason}))
        return
    for shared, group in groupby(WORKLOADS, key=lambda workload: workload.shared):
        # A pool of its own for each that shares: a counter that counts on is a wrong result.
        members = list(group)
        batches = [members] if shared is None else [[member] for member in members]
        for batch in batches:
            run_batch(runner, int(workers), batch)


def run_batch(runner, workers, batch):
    skips = [(workload, reason) for workload in batch if (reason := skip_reason(runner, workload))]
    for workload, reason in skips:
        report(workload, "skipped", reason)
    rest = [workload for workload in batch if workload not in [skipped for skipped, _ in skips]]
    if rest:
        with runner.pool(workers, rest[0].shared) as pool:
            for workload in rest:
                report(workload, *run_one(runner, pool, workload))


def report(workload, outcome, reason):
    print(json.dumps({"workload": workload.name, "outcome": outcome, "reason": reason}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
