"""What it costs when a part of a fleet is killed with -9 at a random moment: a worker, the scheduler, the client.

Each try is a run on a cluster of its own.  Scheduler, workers, client and what hosts start are the real processes; the
child that would measure does rounds of made-up values (`fleet_child`), and tells what it did.  After the kill the run
goes on, with --resume where it was ended, and what is kept then is compared with what was done, value by value.  Ctrl-C
is tried likewise.

- complete: rounds that the hosts had done when the kill came;
- lost: those that are done again, the most of one host: one may have been on its way, as a host looks five times a
  second;
- damaged: files that cannot be read after the kill, or runs with other values than those that were made up;
- went on: runs that then came to their end with all of their rounds;
- left: processes that measured and are still there when the cluster is gone, or 5 s after their client: from its end on
  a round takes ten minutes.

    python -m tests.benchmarks.fleet_kills                        # 30 tries; exits with 1 when a kill costs more
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
CLIENT = frozenset({"client", "Ctrl-C"})   # after either the hosts go on for nobody
HOSTS, ROUNDS = 2, 6
SECONDS = 1.0        # of a round: longer than it takes to be sent on a machine that does other things, too
LABEL = "kept"
MOST_LOST = 1
END_SECONDS = 5.0    # after the client nothing is left anywhere
LIMIT = 600.0        # of what takes seconds


@dataclass(kw_only=True)
class Tried:
    """What one kill came to."""

    killed: str
    complete: int = 0
    lost: int = 0              # the most of one host
    forgotten: int = 0         # likewise, of rounds that were kept already
    damaged: list[str] = field(default_factory=list)
    went_on: bool = False
    left: int = 0
    ended: float = 0.0         # seconds until nothing was left after the client's end
    said: str = ""             # by the client that was there at the kill

    @property
    def fine(self) -> bool:
        """Whether it cost no more than it may."""
        return self.lost <= MOST_LOST and not (self.forgotten or self.damaged or self.left) and self.went_on


def main() -> int:
    """Try, and print what it came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="Of the moments; how far a run is then, is chance.")
    parser.add_argument("--killed", nargs="+", choices=KILLED, default=KILLED[:3], help="In turn.")
    args = parser.parse_args()
    draw, tried = random.Random(args.seed), []
    for number in range(args.tries):
        with tempfile.TemporaryDirectory(prefix="gilscope-kills-", ignore_cleanup_errors=True) as folder:
            tried.append(attempt(args.killed[number % len(args.killed)], draw, Path(folder)))
        print(f"{number + 1} of {args.tries}: {_told(tried[-1])}", flush=True)
    print("\n" + table(tried))
    return 0 if all(each.fine for each in tried) else 1


def _told(tried: Tried) -> str:
    parts = [f"{tried.killed}: {tried.complete} rounds complete, {tried.lost} lost of one host",
             *tried.damaged, *([] if tried.went_on else ["it did not go on"]),
             *([f"{tried.left} left"] * bool(tried.left)),
             *([f"nothing left after {tried.ended:.1f} s"] * bool(tried.ended)),
             *([tried.said] * (not tried.fine))]
    return "; ".join(parts)


def table(tried: Sequence[Tried]) -> str:
    """Return a line for each of who was killed."""
    lines = [f"{'killed':10}{'tries':>7}{'complete':>10}{'lost':>6}{'damaged':>9}{'went on':>9}{'left':>6}"]
    for killed in dict.fromkeys(each.killed for each in tried):
        own = [each for each in tried if each.killed == killed]
        ended = max(each.ended for each in own)
        lines.append(
            f"{killed:10}{len(own):7}{sum(each.complete for each in own):10}{max(each.lost for each in own):6}"
            f"{sum(len(each.damaged) for each in own):9}{sum(each.went_on for each in own):9}"
            f"{sum(each.left for each in own):6}" + f"   nothing left after {ended:.1f} s" * bool(ended))
    return "\n".join(lines)


def attempt(killed: str, draw: random.Random, folder: Path, seconds: float = SECONDS) -> Tried:
    """Have a run, kill a part of it at a random moment, and have it go on."""
    folder.mkdir(exist_ok=True)
    tried, log, path = Tried(killed=killed), folder / "log", folder / DEFAULT_RESULTS / LABEL
    pace = folder / "pace"
    pace.write_text(f"{seconds}")
    with _variables({**fleet_child.variables(log, pace), "GILSCOPE_RESULTS": str(DEFAULT_RESULTS)}):
        with local_fleet(HOSTS) as (address, processes), _client(
            folder, "noop", f"--rounds={ROUNDS}", "--build", f"host={sys.executable}", "--label", LABEL,
            "--fleet", address,
        ) as client:
            _wait(lambda: fleet_child.told(log), client)
            time.sleep(draw.uniform(0, ROUNDS * seconds))   # chance decides what the kill meets
            if killed in CLIENT:
                replace_file(pace, f"{LIMIT}")   # what measures then does not end by itself
            kept, at = _kept(path), time.monotonic()
            _kill(killed, client, processes, draw)
            tried.went_on = client.wait(LIMIT) == 0   # a worker's nanny starts another
            tried.said = (folder / "said").read_text().strip().rpartition("\n")[2]
            if killed in CLIENT:
                tried.left, tried.ended = _left(log, at + END_SECONDS), time.monotonic() - at
                replace_file(pace, f"{seconds}")
            if killed != "worker":
                tried.damaged += _unreadable(path)
            if killed in CLIENT:
                tried.went_on = _resumed(folder, address)
        if killed == "scheduler":
            with local_fleet(HOSTS) as (address, _):
                tried.went_on = _resumed(folder, address)
    tried.left = tried.left or _left(log, time.monotonic() + END_SECONDS)
    tried.damaged += _unreadable(path) or _unlike(path)
    for host in {each.host for each in fleet_child.told(log)}:
        own = [each for each in fleet_child.told(log) if each.host == host]
        done = max((each.number + 1 for each in own if each.event == "did" and each.at < at), default=0)
        since = next((each.number for each in own if each.event == "begins" and each.at > at), done)
        tried.complete += done
        tried.lost = max(tried.lost, done - since)
        tried.forgotten = max(tried.forgotten, kept.get(host, 0) - since)
    return tried


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
    """Yield `gilscope run`, which does not outlive a try that fails."""
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
    """Return the process that a nanny watches; dask's tracker of resources is another child of it."""
    (worker,) = (pid for pid in _children(nanny) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return worker


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _kept(path: Path) -> dict[str, int]:
    """Return by host how many rounds are kept for sure: blocks that wait to be put into the suites are not counted."""
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
    """Return the hosts without all rounds, or with others than those that were made up."""
    expected = fleet_child.values(ROUNDS)
    found = []
    for host in read_fleet(path).hosts:
        run = load_run(path / host.name)
        seen = {(each.cell.name, each.cell.build, one.round): one.wall
                for each in run.measurements for one in each.observations}
        if host.state is not HostState.FINISHED or seen != expected:
            found.append(f"{host.name} is {host.state} and has {len(seen)} of {len(expected)} values, "
                         f"{sum(expected.get(key) != value for key, value in seen.items())} of them wrong")
    return found


def _left(log: Path, deadline: float) -> int:
    """Return how many processes that measured there are still at the deadline."""
    pids = {each.pid for each in fleet_child.told(log)}
    while (left := sum(_lives(pid) for pid in pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


if __name__ == "__main__":
    sys.exit(main())
