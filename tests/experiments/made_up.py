"""A made-up run of any experiment: every cell of its plan, most with a value, and the figures that come of it."""

import dataclasses
import functools
import random

from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import figures_of
from gilscope.toolkit.gil.chrome import write_trace
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store import file_path, load_run
from tests.conformance.builds import ROOT
from tests.experiments.test_results import planned
from tests.fakes import RunMaker
from tests.gil.recorded import make_process

BUILDS = ("3.14", "3.14t")
SKIPPED, STARVED = 9, 11   # every so many cells
KINDS = ("quick", "full", "measured")
UNPUBLISHED = {"scaling"}   # 700 cells: the site of the example results would become half as large again


@functools.cache
def figures(name, kind, folder):
    """Return an experiment's figures: of made-up runs, "quick" or "full", or of the one in results/example."""
    if kind == "measured":
        if name in UNPUBLISHED:
            return ()
        stored = ROOT / "results" / "example" / "experiments" / name
        return tuple(figures_of(catalog.find(name), load_run(stored), stored))
    return tuple(figures_of(catalog.find(name), made_up_run(name, EffortLevel(kind), folder), folder))


def made_up_run(name, effort, folder, *, whole=False):
    """Return a run whose cells lie apart, some skipped, some starved unless `whole`; its traces are below `folder`."""
    _, plan = planned(name, effort)
    maker, chance = RunMaker(rounds=8), random.Random(name)
    for number, cell in enumerate(plan.cells, 1):
        if number % SKIPPED == 0 and not whole:
            maker.skip(cell, "nothing works here")
        else:
            maker.measure(cell, 10 ** chance.uniform(-4, -1), starved=8 * (number % STARVED == 0 and not whole),
                          pss=50, **metrics(chance), **(calls(0.1 + chance.random()) if name == "scaling" else {}))
        if name == "gil-trace":
            keep_trace(cell, folder)
    for skip in plan.skips:
        maker.skip(skip.cell, skip.reason)
    return maker.run(BUILDS, options={"experiment": name, "effort": effort})


def metrics(chance):
    """Return a number for each metric that a figure shows."""
    fast = 10 ** chance.uniform(-5, -2)
    return {"p50": fast, "p90": 2 * fast, "p99": 4 * fast, "max": 9 * fast, "share": chance.random() / 2,
            "success": chance.random(), "poll": 0.01, "best": fast / 3, "worst": 50 * fast, "signals": 10,
            "late": 0, "limit": 2.0, "call": 0.1, "pages": 200}


def calls(share, clean=0.02, one=0.5):
    """Return the metrics of an operation of `scaling`: two threads reach `share` of two processes.

    Args:
        share: Of the processes' throughput.
        clean: Seconds in which the threads were undisturbed; 0.0: all calls were disturbed.
        one: Throughput of one thread, as a share of the processes'.
    """
    lasted, found = 40_000_000, {}
    modes = (("one", 1, one, 0.02), ("threads", 2, share, clean), ("processes", 2, 1.0, 0.02))
    for mode, threads, rate, quiet in modes:
        spent = int(threads * quiet * 1e9)
        found |= {f"{mode}_calls": int(spent * rate / threads / 100), f"{mode}_spent": spent,
                  f"{mode}_made": int(lasted * rate / threads / 100), f"{mode}_lasted": lasted, f"{mode}_queued": 0}
    return found


def keep_trace(cell: Cell, folder):
    path = file_path(folder, cell, "trace.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    process = make_process()
    threads = tuple(dataclasses.replace(each, main=False, name=f"CPU {nth}")
                    for nth, each in enumerate(process.threads, 1))
    write_trace([dataclasses.replace(process, threads=threads)], path)
