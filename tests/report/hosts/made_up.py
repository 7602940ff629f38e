"""A fleet whose truth is known: four hosts that agree in one model, change in another and miss a cell."""

import dataclasses

from gilscope.toolkit.model import Cell
from gilscope.toolkit.stats.verdict import Comparison
from gilscope.toolkit.store import Fleet, FleetStore, Host, HostState
from tests.fakes import MACHINE, RunMaker
from tests.test_store import write

HOSTS = {"host-1": 1.0, "host-2": 0.97, "host-3": 1.05, "host-4": 1.01}   # what they gain more or less
CORES = {"host-1": 2, "host-2": 8, "host-3": 4, "host-4": 4}
LOST = Host(name="host-5", state=HostState.LOST, note="the connection was closed before its first round")
STATES = (*(Host(name=name, state=HostState.FINISHED) for name in HOSTS), LOST)


def cell(runner, workers, build):
    """Return a cell of the one workload."""
    return Cell(workload="primes", runner=runner, workers=workers, build=build)


def host_run(name, label="night", *, factor=1.0, rounds=8):
    """Return the run of a host: asyncio gains but on host-2, where it loses; on host-3 a cell is starved."""
    gain = HOSTS[name] * factor
    maker = RunMaker(rounds=rounds, seed=[*HOSTS].index(name) + 1, noise=0.01)
    for build, alone in (("3.14", 0.40), ("3.14t", 0.42)):
        maker.measure(cell("serial", 1, build), alone)
        if build == "3.14":
            maker.twin(cell("serial", 1, build), alone)
        maker.measure(cell("threads", 2, build), alone * 1.01)
        if build == "3.14t":
            maker.measure(cell("free-threaded", 2, build), alone / (1.9 * gain))
        else:
            maker.skip(cell("free-threaded", 2, build), "the GIL is enabled in this build")
        starved = rounds - 2 if (name, build) == ("host-3", "3.14") else 0
        maker.measure(cell("subinterpreters", 2, build), alone / (1.8 * gain**2), starved=starved)
        maker.measure(cell("asyncio", 2, build), alone / (0.95 if name == "host-2" else 1.15))
    run = maker.run(("3.14", "3.14t"), label=f"{label}/{name}")
    return dataclasses.replace(run, machine=dataclasses.replace(MACHINE, cores=CORES[name], hostname=f"secret-{name}"))


def comparison(ratio, spread=0.002):
    """Return what one host says of two cells, with half of its interval."""
    return Comparison(ratio=ratio, lo=ratio - spread, hi=ratio + spread, floor=0.001, rounds=8)


def write_fleet(results, label="night", *, factor=1.0, names=tuple(HOSTS), lost=()):
    """Keep a fleet's run as it would be kept; return its folder."""
    store = FleetStore.create(label, results)
    for name in names:
        write(host_run(name, label, factor=factor), results.parent, name, store.path)
    hosts = tuple(Host(name=name, state=HostState.FINISHED) for name in names)
    store.save(Fleet(hosts=(*hosts, *lost)))
    store.close()
    return store.path
