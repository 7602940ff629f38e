"""Replace `gilscope run` on the hosts of a cluster: produce rounds of made-up values, each after a given time.

A worker that loads this module (`--preload`) starts it instead of a run.  Everything else is as in a run: the child
process, its folder and files, its supervision, and the requests to it.  The file named by LOG records its events.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.fleet import on_host
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.store.transfer_rounds import RoundReceiver
from tests.benchmarks.fleet import block
from tests.conformance.builds import ROOT
from tests.fakes import MACHINE

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = "GILSCOPE_FLEET_LOG"
PACE = "GILSCOPE_FLEET_PACE"         # the file with the seconds that the next round takes
HOST = "GILSCOPE_FLEET_HOST"
CELLS = 4


def variables(log: Path, pace: Path) -> dict[str, str]:
    """Return the environment in which dask's workers and their children use this module instead of measuring."""
    return {LOG: str(log), PACE: str(pace), "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__WORKER__PRELOAD": __name__}


def dask_setup(worker: Any) -> None:
    """Make this worker start this module instead of a measurement."""
    os.environ[HOST] = worker.name
    on_host.Supervised = _started
    on_host.this_machine = lambda: MACHINE


def _started(command: Sequence[str], **options: Any) -> Supervised:
    return Supervised([sys.executable, "-m", __name__, *command[command.index("run") + 1:]], **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A line of the log."""

    at: float       # seconds of time.monotonic(), which all processes of the machine share
    host: str
    pid: int
    event: str      # "begins", with `number` existing rounds; "did", a round that is now in its files
    number: int


def read_log(log: Path) -> list[LogEvent]:
    """Return the events in order, without an unfinished last line."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [LogEvent(at=float(at), host=host, pid=int(pid), event=event, number=int(number))
            for at, host, pid, event, number in map(str.split, lines)]


def _log(event: str, number: int) -> None:
    line = f"{time.monotonic()} {os.environ[HOST]} {os.getpid()} {event} {number}\n"
    with Path(os.environ[LOG]).open("a") as file:   # one write, so that lines of several processes do not mix
        file.write(line)


def values(rounds: int, host: str) -> dict[tuple[str, str, int], tuple[float, ...]]:
    """Return the values of a complete run of `rounds` rounds on a host, by cell, build and round."""
    suites = [json.loads(zlib.decompress(block(number, rounds, CELLS, host)))["suites"] for number in range(rounds)]
    return {(benchmark["metadata"]["name"], build, number): tuple(benchmark["runs"][0]["values"])
            for number, each in enumerate(suites) for build, suite in each.items() for benchmark in suite["benchmarks"]}


def main() -> None:
    """Produce the missing rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int)
    args, _ = parser.parse_known_args()
    with RoundReceiver(Path("results") / on_host.LABEL, on_host.LABEL) as arriving:
        rounds = args.rounds or arriving.run.rounds_planned
        _log("begins", arriving.rounds)
        for number in range(arriving.rounds, rounds + 1):   # after the last round there is the run's end
            if number < rounds:
                time.sleep(float(Path(os.environ[PACE]).read_text()))
            arriving.receive(block(number, rounds, CELLS, os.environ[HOST]))
            arriving.merge()
            if number < rounds:
                _log("did", number)


if __name__ == "__main__":
    main()
