"""Measure the cost of coordination: many simulated hosts with a real scheduler and client.

The hosts measure nothing: each immediately returns a round of made-up values of realistic size.  All hosts run in one
process.  Scheduler, hosts and client share the cores of this machine.

    python -m tests.benchmarks.fleet                  # 200 hosts, 100 rounds, 84 cells
    python -m tests.benchmarks.fleet --hosts 20 --rounds 10
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gilscope.toolkit.fleet import on_host
from gilscope.toolkit.fleet.dask_cluster import RESOURCE, Connection
from gilscope.toolkit.fleet.measuring import FleetRequest, FleetRun
from gilscope.toolkit.fleet.start_dask import local_fleet, quiet_variables
from gilscope.toolkit.measure.child.process_tree import descendants
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store import Fleet, FleetStore, HostState, header, load_run, read_fleet
from tests.conformance.builds import ROOT
from tests.fakes import RunMaker

BUILDS = ("3.14", "3.14t")
EXAMPLE = ROOT / "results" / "example" / "3.13.json"   # whose metadata the made-up values have


def cells(count: int) -> list[Cell]:
    """Return `count` cells, half of them on each build."""
    workers = range(1, count)
    return [Cell(workload=workload, runner=runner, workers=number, build=build)
            for number in workers for workload in ("primes", "sleep", "json_roundtrip")
            for runner in ("serial", "threads") for build in BUILDS][:count]


@functools.cache
def metadata() -> dict[str, object]:
    """Return the metadata that pyperf and gilscope store with the values of one process."""
    suite = json.loads(EXAMPLE.read_text())
    benchmark = suite["benchmarks"][0]
    return suite["metadata"] | benchmark["metadata"] | benchmark["runs"][0]["metadata"]


def drawn(draw: random.Random) -> dict[str, object]:
    """Return such metadata with random numbers, since constant metadata would be compressed away."""
    return {
        name: draw.uniform(0, 0.5) if isinstance(value, float) else
        " ".join(repr(draw.random()) for _ in range(6)) if name in {"gilscope_cpu", "gilscope_began"} else value
        for name, value in metadata().items()
    }


@functools.cache
def block(number: int, rounds: int, count: int, host: str = "") -> bytes:
    """Return the round `number` of `rounds`, as a host sends it: no two hosts have the same values."""
    chosen = cells(count)
    over, draw = number == rounds, random.Random(f"{host} {number}")
    run = RunMaker(rounds=rounds).run(BUILDS, rounds_done=min(number + 1, rounds), cells=tuple(chosen), label="fleet",
                                      stopped="rounds" if over else "running")
    suites = {} if over else {build: {"version": "1.0", "metadata": {}, "benchmarks": [
        {"metadata": {"name": cell.name}, "runs": [{
            "metadata": drawn(draw) | {"name": cell.name, "gilscope_round": number},
            "values": [0.1 + draw.random() for _ in range(6)]}]}
        for cell in chosen if cell.build == build]} for build in BUILDS}
    return zlib.compress(json.dumps({"header": header(run), "suites": suites}).encode(), 1)


class Simulated:
    """A run on a simulated host, whose next round is ready as soon as it is requested."""

    given_up = False

    def __init__(self, command: list[str], _sent: bytes) -> None:
        self._rounds, self._cells = map(int, command)
        self._host = f"{random.random()}"

    def answer(self, since: int, _wait: float, _wanted: object) -> on_host.Answer:
        over = since == self._rounds
        return {"state": "ended" if over else "running", "code": 0 if over else None, "said": [],
                "block": block(since, self._rounds, self._cells, self._host)}

    def end(self) -> None:
        pass


async def serve(address: str, hosts: int) -> None:
    """Simulate many hosts until this process is terminated."""
    from distributed import FleetWorker

    on_host.Session = Simulated
    workers = [FleetWorker(address, nthreads=1, name=f"host-{number}", resources={RESOURCE: 1}, memory_limit=0,
                           host="127.0.0.1", dashboard=False, executor=ThreadPoolExecutor(1))
               for number in range(1, hosts + 1)]
    for each in workers:
        await each
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--cells", type=int, default=84)
    parser.add_argument("--serve", metavar="ADDRESS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.serve, args.hosts))
        return
    with tempfile.TemporaryDirectory() as folder:
        simulate(args, Path(folder))


def simulate(args: argparse.Namespace, folder: Path) -> None:
    """Run the fleet and print its cost."""
    with local_fleet(0) as (address, (scheduler,)):
        began = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.fleet", "--serve", address, "--hosts", str(args.hosts)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | quiet_variables(),
        ) as hosts:
            try:
                assert hosts.stdout.readline() == b"ready\n"
                print(f"{args.hosts} hosts began in {time.monotonic() - began:.0f} s")
                with Connection(address) as connection:
                    store = FleetStore.create("fleet", folder)
                    asked = FleetRequest(label="fleet", command=(str(args.rounds), str(args.cells)), again=())
                    began, cpu = time.monotonic(), time.process_time()
                    FleetRun(connection, store, Fleet(hosts=()), asked, print).go()
                    took, cpu = time.monotonic() - began, time.process_time() - cpu
                tell(args, folder, took, cpu, scheduler.pid)
            finally:
                hosts.kill()


def tell(args: argparse.Namespace, folder: Path, took: float, cpu: float, scheduler: int) -> None:
    """Print the cost; `scheduler` is an ancestor of the scheduler's process."""
    path = folder / "fleet"
    states = [host.state for host in read_fleet(path).hosts]
    sent = sum(len(block(number, args.rounds, args.cells)) for number in range(args.rounds))
    kept = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    blocks = args.hosts * args.rounds
    print(f"{states.count(HostState.FINISHED)} of {args.hosts} hosts finished")
    print(f"{blocks} blocks of {args.cells} cells in {took:.0f} s: {blocks / took:.0f} each second, "
          f"{1000 * took / blocks:.1f} ms each, {1000 * cpu / blocks:.1f} ms of the client's CPU")
    print(f"one block is {sent / args.rounds / 1024:.0f} KiB on its way; results are {kept / 2**20:.0f} MiB")
    print(f"client: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in descendants(scheduler)]
    most = max(int(status.split("VmHWM:")[1].split()[0]) for status in statuses)
    print(f"scheduler: {most / 1024:.0f} MiB at most")
    run = load_run(path / f"host-{args.hosts}")
    assert all(len(each.observations) == args.rounds for each in run.measurements)


if __name__ == "__main__":
    main()
