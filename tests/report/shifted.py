"""Two runs whose truth is known: a machine that got slower in between, and workloads that changed."""

from tests.fakes import Cell, RunMaker

WORKLOADS = ("primes", "sort", "regex", "sha256_64k")
BUILDS = ("3.14", "3.14t")


def cells(workload, build):
    return [Cell(workload=workload, runner=runner, workers=workers, build=build)
            for runner, workers in (("serial", 1), ("threads", 2), ("subinterpreters", 2))]


def shifted_run(label, times=1.0, *, changed=None, workloads=WORKLOADS, builds=BUILDS, seed=1, rounds=8):
    """Return a run whose times are `times` as long, and those of (workload, build) in `changed` by a factor more."""
    maker = RunMaker(seed=seed, rounds=rounds)
    for n, workload in enumerate(workloads):
        for build in builds:
            factor = times * (changed or {}).get((workload, build), 1.0)
            alone, *others = cells(workload, build)
            maker.measure(alone, 0.1 * (n + 1) * factor)
            maker.twin(alone, 0.1 * (n + 1) * factor)
            for each in others:
                maker.measure(each, 0.06 * (n + 1) * factor)
    return maker.run(builds, label=label)
