"""Kill a worker, the scheduler or the client of a fleet with SIGKILL at a random moment, and measure the damage.

Each try is a run on a new cluster.  Scheduler, workers, client and the hosts' processes are real; only the measuring
child is replaced: it produces rounds of made-up values and logs them (`fleet_child`).  After the kill, the run
continues, with --resume if it ended, and the stored values are compared with the log.  Some tries use Ctrl-C instead.

- complete: rounds that the hosts had finished before the kill;
- lost: the largest number of rounds that one host had to repeat.  One is expected, since a host looks for new rounds
  five times a second;
- damaged: files that cannot be read after the kill, or runs with values that differ from the log;
- went on: runs that finished afterwards with all of their rounds;
- left: measuring processes that still exist after the end of the cluster, or 5 s after the end of their client.  For
  this test a round takes ten minutes once the client has ended.

    python -m tests.benchmarks.fleet_kills                        # 30 tries; exits with 1 if a kill does more damage
    python -m tests.benchmarks.fleet_kills --tries 6 --seed 7 --killed worker client
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.fleet.start_dask import local_fleet
from gilscope.toolkit.store import HostState, load_run, read_fleet, read_header
from gilscope.toolkit.store.header import HEADER, replace_file
from gilscope.toolkit.store.labels import DEFAULT_RESULTS
from tests.benchmarks import fleet_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.processes.supervised import Supervised

KILLED = ("worker", "scheduler", "client", "Ctrl-C")
CLIENT = frozenset({"client", "Ctrl-C"})   # after either, the hosts continue without a client
HOSTS, ROUNDS = 2, 6
SECONDS = 1.0        # of a round: longer than sending one takes on a busy machine
LABEL = "kept"
MOST_LOST = 1
END_SECONDS = 5.0    # after the client's end, no process may be left
LIMIT = 600.0        # of a step that usually takes seconds


@dataclass(kw_only=True)
class KillOutcome:
    """The outcome of one kill."""

    killed: str
    complete: int = 0
    lost: int = 0              # of the host that lost most
    forgotten: int = 0         # of the host that lost most, of rounds that were stored already
    damaged: list[str] = field(default_factory=list)
    went_on: bool = False
    left: int = 0
    ended: float = 0.0         # seconds from the client's end until no process was left
    said: str = ""             # output of the client that ran during the kill

    @property
    def fine(self) -> bool:
        """True if the damage is within the limits."""
        return self.lost <= MOST_LOST and not (self.forgotten or self.damaged or self.left) and self.went_on


def main() -> int:
    """Run the tries and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="Of the moments; how far a run is then, is chance.")
    parser.add_argument("--killed", nargs="+", choices=KILLED, default=KILLED[:3], help="In turn.")
    args = parser.parse_args()
    draw, outcomes = random.Random(args.seed), []
    for number in range(args.tries):
        with tempfile.TemporaryDirectory(prefix="gilscope-kills-", ignore_cleanup_errors=True) as folder:
            outcomes.append(attempt(args.killed[number % len(args.killed)], draw, Path(folder)))
        print(f"{number + 1} of {args.tries}: {_line(outcomes[-1])}", flush=True)
    print("\n" + table(outcomes))
    return 0 if all(each.fine for each in outcomes) else 1


def _line(outcome: KillOutcome) -> str:
    parts = [f"{outcome.killed}: {outcome.complete} rounds complete, {outcome.lost} lost of one host",
             *outcome.damaged, *([] if outcome.went_on else ["it did not go on"]),
             *([f"{outcome.left} left"] if outcome.left else []),
             *([f"nothing left after {outcome.ended:.1f} s"] if outcome.ended else []),
             *([] if outcome.fine else [outcome.said])]
    return "; ".join(parts)


def table(outcomes: Sequence[KillOutcome]) -> str:
    """Return a line for each kind of killed process."""
    lines = [f"{'killed':10}{'tries':>7}{'complete':>10}{'lost':>6}{'damaged':>9}{'went on':>9}{'left':>6}"]
    for killed in dict.fromkeys(each.killed for each in outcomes):
        own = [each for each in outcomes if each.killed == killed]
        ended = max(each.ended for each in own)
        lines.append(
            f"{killed:10}{len(own):7}{sum(each.complete for each in own):10}{max(each.lost for each in own):6}"
            f"{sum(len(each.damaged) for each in own):9}{sum(each.went_on for each in own):9}"
            f"{sum(each.left for each in own):6}" + (f"   nothing left after {ended:.1f} s" if ended else ""))
    return "\n".join(lines)


def attempt(killed: str, draw: random.Random, folder: Path, seconds: float = SECONDS,
            point: tuple[str, int] | None = None) -> KillOutcome:
    """Start a run, kill a part of it, and let it continue.

    Args:
        killed: One of KILLED.
        draw: For what is random.
        folder: Of the run.
        seconds: That a round takes.
        point: An event of `fleet_child` with its number, after which the part is killed; None: a random moment.
    """
    folder.mkdir(exist_ok=True)
    outcome, log, path = KillOutcome(killed=killed), folder / "log", folder / DEFAULT_RESULTS / LABEL
    pace = folder / "pace"
    pace.write_text(f"{seconds}")
    with _variables({**fleet_child.variables(log, pace), "GILSCOPE_RESULTS": str(DEFAULT_RESULTS)}):
        with local_fleet(HOSTS) as (address, processes), _client(
            folder, "noop", f"--rounds={ROUNDS}", "--build", f"host={sys.executable}", "--label", LABEL,
            "--fleet", address,
        ) as client:
            _wait(lambda: point in {None, *((each.event, each.number) for each in fleet_child.read_log(log))}
                  and fleet_child.read_log(log), client)
            if point is None:
                time.sleep(draw.uniform(0, ROUNDS * seconds))
            if killed in CLIENT:
                replace_file(pace, f"{LIMIT}")   # the measuring process does not end by itself then
            kept, at = _kept(path), time.monotonic()
            _kill(killed, client, processes, draw)
            outcome.went_on = client.wait(LIMIT) == 0   # the nanny of a killed worker starts another one
            outcome.said = (folder / "said").read_text().strip().rpartition("\n")[2]
            if killed in CLIENT:
                outcome.left, outcome.ended = _left(log, at + END_SECONDS), time.monotonic() - at
                replace_file(pace, f"{seconds}")
            if killed != "worker":
                outcome.damaged += _unreadable(path)
            if killed in CLIENT:
                outcome.went_on = _resumed(folder, address)
        if killed == "scheduler":
            with local_fleet(HOSTS) as (address, _):
                outcome.went_on = _resumed(folder, address)
    outcome.left = outcome.left or _left(log, time.monotonic() + END_SECONDS)
    outcome.damaged += _unreadable(path) or _unlike(path)
    for host in {each.host for each in fleet_child.read_log(log)}:
        own = [each for each in fleet_child.read_log(log) if each.host == host]
        done = max((each.number + 1 for each in own if each.event == "did" and each.at < at), default=0)
        since = next((each.number for each in own if each.event == "begins" and each.at > at), done)
        outcome.complete += done
        outcome.lost = max(outcome.lost, done - since)
        outcome.forgotten = max(outcome.forgotten, kept.get(host, 0) - since)
    return outcome


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _client(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield `gilscope run`; end it if the try fails."""
    command = [sys.executable, "-m", "gilscope", "run", *words]
    with (folder / "said").open("wb") as said, subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
    ) as client:
        try:
            yield client
        finally:
            client.kill()


def _resumed(folder: Path, address: str) -> bool:
    with _client(folder, "--resume", LABEL, "--fleet", address) as client:
        return client.wait(LIMIT) == 0


def _wait(condition: Callable[[], object], client: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        if client.poll() is not None or time.monotonic() > deadline:
            raise AssertionError("the run ended before it began")
        time.sleep(0.02)


def _kill(killed: str, client: subprocess.Popen[bytes], processes: Sequence[Supervised], draw: random.Random) -> None:
    if killed == "Ctrl-C":
        client.send_signal(signal.SIGINT)
    elif killed == "client":
        client.kill()
    else:
        scheduler, *nannies = (pid for each in processes for pid in _children(each.pid))
        os.kill(scheduler if killed == "scheduler" else _worker(draw.choice(nannies)), signal.SIGKILL)


def _worker(nanny: int) -> int:
    """Return the worker process of a nanny, whose children also include dask's resource tracker."""
    (worker,) = (pid for pid in _children(nanny) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return worker


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _kept(path: Path) -> dict[str, int]:
    """Return the number of safely stored rounds of each host: blocks that are not yet in the suites are not counted."""
    return {file.parent.name: read_header(file.parent).rounds_done for file in path.glob(f"*/{HEADER}")}


def _unreadable(path: Path) -> list[str]:
    found = []
    for read, what in ((read_fleet, path), *((load_run, file.parent) for file in path.glob(f"*/{HEADER}"))):
        try:
            read(what)
        except BadFileError as error:
            found.append(str(error))
    return found


def _unlike(path: Path) -> list[str]:
    """Return the hosts whose rounds are incomplete or differ from the log."""
    found = []
    for host in read_fleet(path).hosts:
        expected = fleet_child.values(ROUNDS, host.name)
        run = load_run(path / host.name)
        seen = {(each.cell.name, each.cell.build, one.round): one.wall
                for each in run.measurements for one in each.observations}
        if host.state is not HostState.FINISHED or seen != expected:
            found.append(f"{host.name} is {host.state} and has {len(seen)} of {len(expected)} values, "
                         f"{sum(expected.get(key) != value for key, value in seen.items())} of them wrong")
    return found


def _left(log: Path, deadline: float) -> int:
    """Return the number of measuring processes that still exist at the deadline."""
    pids = {each.pid for each in fleet_child.read_log(log)}
    while (left := sum(_lives(pid) for pid in pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


if __name__ == "__main__":
    sys.exit(main())
