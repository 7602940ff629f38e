"""Measure the overhead of a fleet, and compare the results of its hosts with those of a run without a fleet.

Runs the same request on a local fleet and without one.  Meanwhile it reads the CPU time of dask's processes and of the
client without their children, which measure, as in a run without a fleet.  Then it compares each host's run with the
run without a fleet, as `gilscope compare` does.

    python -m tests.benchmarks.fleet_cost [--hosts N] [words of gilscope run]
    python -m tests.benchmarks.fleet_cost countdown tcp_echo --rounds 12 --workers 1,2
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

from gilscope.toolkit.report.table.contrast import compare_runs
from gilscope.toolkit.store import load_run
from gilscope.toolkit.store.labels import DEFAULT_RESULTS

LOOK = 0.5   # seconds between two looks at the processes
GILSCOPE = (sys.executable, "-m", "gilscope")
AIM = 0.02   # of a host's time


def main() -> None:
    """Run both, and print the fleet's overhead and the differences between hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    args, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [*GILSCOPE, "run", *words]
        seconds, used = watched([*command, "--fleet", f"local:{args.hosts}", "--label", "fleet"], folder)
        print(f"a fleet of {args.hosts}: {seconds:.0f} s; CPU time of it that measures nothing:")
        for role, cpu in sorted(used.items()):
            print(f"  {role:12}{cpu:8.2f} s{cpu / seconds:8.2%}")
        share = sum(used.values()) / seconds
        print(f"  {'all':12}{sum(used.values()):8.2f} s{share:8.2%} of the time, at most {AIM:.0%} asked for")
        subprocess.run([*command, "--label", "alone"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        alone = load_run(folder / DEFAULT_RESULTS / "alone")
        for host in sorted((folder / DEFAULT_RESULTS / "fleet").glob("host-*")):
            compared = [(each.sample, each.comparison) for each in compare_runs(alone, load_run(host))
                        if each.comparison is not None]
            outside = [(cell, seen) for cell, seen in compared if not seen.lo <= 1 <= seen.hi]
            print(f"{host.name} against none: 1 is outside of {len(outside)} of {len(compared)} intervals")
            for cell, seen in outside:
                print(f"  {cell.build} {cell.name}: {seen.ratio:.3f}x [{seen.lo:.3f}, {seen.hi:.3f}]")


def watched(command: list[str], folder: Path) -> tuple[float, dict[str, float]]:
    """Return the command's wall seconds, and the CPU seconds of each kind of process that does not measure."""
    began = time.monotonic()
    seen: dict[int, tuple[str, float]] = {}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as client:
        while client.poll() is None:
            for pid, role, cpu in looked_at(client.pid):
                seen[pid] = role, cpu
            time.sleep(LOOK)
    if client.returncode:
        raise SystemExit(f"the fleet's run ended with exit code {client.returncode}")
    used: dict[str, float] = defaultdict(float)
    for role, cpu in seen.values():
        used[role] += cpu
    return time.monotonic() - began, used


def looked_at(client: int) -> list[tuple[int, str, float]]:
    """Return number, role and CPU seconds of the client and of the dask processes that it started."""
    found = []
    try:
        processes = [psutil.Process(client), *psutil.Process(client).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    for process in processes:
        try:
            words, times = " ".join(process.cmdline()), process.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if process.pid == client:
            role = "client"
        elif "dask scheduler" in words or "dask worker" in words:
            role = "scheduler" if "dask scheduler" in words else "nanny"
        else:
            role = "worker" if "spawn_main" in words and parent_is_dask(process) else ""
        if role:
            found.append((process.pid, role, times.user + times.system))
    return found


def parent_is_dask(process: psutil.Process) -> bool:
    """Return True if a nanny of dask started the process."""
    try:
        parent = process.parent()
        return parent is not None and "dask worker" in " ".join(parent.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


if __name__ == "__main__":
    main()
