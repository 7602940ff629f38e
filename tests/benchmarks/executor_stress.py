"""Stress SubinterpreterExecutor: is any task lost, run twice or never answered?

PYTHON -m tests.benchmarks.executor_stress --file FILE [--tasks N] [--slice N] [--beside N] [--callers N]

It runs in the Python that starts it, a process for each slice, beside busy processes.  Each slice adds a line to FILE;
started again with the same file, it goes on until so many tasks of this build have run, and prints the sums of every
build in the file.  So it can be ended at any time, and takes 10^7 tasks in as many sittings as one likes.

Callers submit bursts of random numbers of tasks with
arguments and results of random sizes, through submit and map, wait for them in every way there is, cancel some, and
pause between them; some tasks fail and some take up to 3 ms.  Every task leaves a mark, and every answer is compared.
In every fourth slice, the main thread gets a KeyboardInterrupt every few milliseconds instead of a second caller.
`--seed N` runs a single slice again, which a line of the file names.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent import futures
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import SubinterpreterExecutor
from tests.benchmarks.executor_tasks import FAILS_EVERY, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_BURST = 2000        # tasks
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
SILENCE_SECONDS = 120.0  # without an answer: a hang
HANGS = 2                # exit status
FAULTS = ("lost", "doubled", "WRONG", "hung", "crashed")

Call = tuple[int, int, int, bytes, int, float]


class Caller:
    """A caller of the executor, with tasks of its own numbers."""

    def __init__(self, executor: SubinterpreterExecutor, fd: int, size: int, numbers: range, seed: int) -> None:
        self.executor, self.fd, self.size = executor, fd, size
        self.numbers, self.next = numbers, numbers.start
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.progress = time.monotonic()

    def run(self) -> None:
        """Send bursts until all numbers are used."""
        while self.next < self.numbers.stop:
            self.burst()

    def burst(self) -> None:
        """Send tasks and compare their answers."""
        draw = self.random
        count = min(draw.choice((1, 2, 10, 100, MOST_BURST)), self.numbers.stop - self.next)
        calls = [self.call(number) for number in range(self.next, self.next + count)]
        self.next += count
        self.progress = time.monotonic()
        ways = (self.by_result, self.by_wait, self.by_as_completed, self.by_callback, self.by_map, self.by_map)
        draw.choice(ways)(calls)
        self.progress = time.monotonic()
        if draw.random() < 0.3:
            time.sleep(draw.random() * 0.003)

    def call(self, number: int) -> Call:
        """Return random arguments."""
        draw = self.random
        size = draw.choice((0, 0, 0, 10, 500, 4000, 6000)) if draw.random() < 0.1 else 0
        size = 100_000 if draw.random() < 0.0005 else size
        answer = draw.choice((10, 3000, 4070, 9000)) if draw.random() < 0.02 else 0
        pause = draw.random() * 0.003 if draw.random() < 0.0005 else 0.0
        return self.fd, self.size, number, bytes(size), answer, pause

    def check(self, call: Call, future: futures.Future[tuple[int, int, bytes]]) -> None:
        """Compare the answer to a call."""
        self.progress = time.monotonic()
        number, payload, answer = call[2], call[3], call[4]
        if future.cancelled():
            self.counts["cancelled"] += 1
        elif number % FAILS_EVERY == 0:
            error = future.exception()
            self.counts["failed" if isinstance(error, LookupError) and error.args == (number,) else "WRONG"] += 1
        else:
            self.counts["done" if future.result() == (number, len(payload), bytes(answer)) else "WRONG"] += 1

    def submitted(self, calls: list[Call]) -> list[futures.Future[tuple[int, int, bytes]]]:
        """Submit the calls, and cancel some."""
        sent = [self.executor.submit(work, *call) for call in calls]
        for _ in range(self.random.choice((0, 0, 0, 5))):
            self.random.choice(sent).cancel()
        return sent

    def by_result(self, calls: list[Call]) -> None:
        """Wait for one after the other."""
        for call, future in zip(calls, self.submitted(calls), strict=True):
            futures.wait([future]) if self.random.random() < 0.01 else None
            with suppress(LookupError, futures.CancelledError):
                future.result()
            self.check(call, future)

    def by_wait(self, calls: list[Call]) -> None:
        """Wait for all at once, from two threads."""
        sent = self.submitted(calls)
        other = threading.Thread(target=futures.wait, args=(sent[::-1],))
        other.start()
        futures.wait(sent)
        other.join()
        for call, future in zip(calls, sent, strict=True):
            self.check(call, future)

    def by_as_completed(self, calls: list[Call]) -> None:
        """Take them as they come."""
        sent = self.submitted(calls)
        call_of = dict(zip(sent, calls, strict=True))
        for future in futures.as_completed(sent):
            self.check(call_of.pop(future), future)
        self.counts["WRONG"] += len(call_of)

    def by_callback(self, calls: list[Call]) -> None:
        """Be called by each, and wait for nothing else."""
        sent = self.submitted(calls)
        seen: list[object] = []
        ended = threading.Event()

        def note(future: object) -> None:
            seen.append(future)
            if len(seen) == len(sent):
                ended.set()

        for future in sent:
            future.add_done_callback(note)
        ended.wait()
        for call, future in zip(calls, sent, strict=True):
            self.check(call, future)

    def by_map(self, calls: list[Call]) -> None:
        """Map those that do not fail."""
        left = [call for call in calls if call[2] % FAILS_EVERY]
        self.counts["left out"] += len(calls) - len(left)
        options = {"chunksize": self.random.choice((1, 7, 300)), "buffersize": self.random.choice((None, None, 1, 50))}
        results = []
        for result in self.executor.map(work, *zip(*left, strict=True), **options) if left else ():
            results.append(result)
            self.progress = time.monotonic()     # one by one, 2,000 take minutes beside busy processes
        wanted = [(number, len(payload), bytes(answer)) for _, _, number, payload, answer, _ in left]
        self.counts["done"] += sum(map(tuple.__eq__, results, wanted))
        self.counts["WRONG"] += len(wanted) - sum(map(tuple.__eq__, results, wanted))


class Interrupted(Caller):
    """A caller on the main thread that is interrupted all the time: what it had begun must end."""

    def run(self) -> None:
        """Send bursts, each of which may be cut short, and wait for all that had been submitted."""
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        while self.next < self.numbers.stop:
            count = min(self.random.choice((10, 100, MOST_BURST)), self.numbers.stop - self.next)
            calls = [self.call(number) for number in range(self.next, self.next + count)]
            self.next += count
            sent: list[futures.Future[tuple[int, int, bytes]]] = []
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, self.random.random() * 0.01)
                    for call in calls:
                        sent.append(self.executor.submit(work, *call))  # noqa: PERF401 - some of them, if interrupted
                    # Interrupting waits would test threading.Condition, whose locks do not survive it.
                    self.executor.map(abs, range(count))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                self.counts["interrupts"] += 1
            futures.wait(sent)
            self.progress = time.monotonic()
            for call, future in zip(calls, sent, strict=False):
                self.check(call, future)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep processes busy beside what runs inside."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def watch(callers: list[Caller]) -> None:
    """End the process with the stacks of all threads when a caller makes no progress."""
    while all(caller.next == caller.numbers.stop or time.monotonic() - caller.progress < SILENCE_SECONDS
              for caller in callers):
        time.sleep(1)
    dispatcher = callers[0].executor._dispatcher
    print("pending:", len(dispatcher.pending), "undone:", len(dispatcher._again), "turn:", dispatcher._turn,
          "frames:", {number: tasks.count() for number, (tasks, _) in dispatcher._frames.items()}, file=sys.stderr)
    faulthandler.dump_traceback()
    os._exit(HANGS)


def run_slice(given: argparse.Namespace) -> dict[str, int]:
    """Run callers side by side, and return what came of their tasks."""
    tasks, seed = given.slice, given.seed
    fd = os.memfd_create("marks")
    os.ftruncate(fd, tasks)
    interrupts = seed % 4 == 0
    shares = 1 if interrupts else given.callers
    kind: Callable[..., Caller] = Interrupted if interrupts else Caller
    with busy_processes(given.beside), SubinterpreterExecutor(given.workers) as executor:
        bounds = [tasks * index // shares for index in range(shares + 1)]
        callers = [kind(executor, fd, tasks, range(*bounds[index:index + 2]), seed + index)
                   for index in range(shares)]
        threading.Thread(target=watch, args=(callers,), daemon=True).start()
        threads = [threading.Thread(target=caller.run) for caller in callers[1:]]
        for thread in threads:
            thread.start()
        callers[0].run()
        for thread in threads:
            thread.join()
    counts: Counter[str] = sum((caller.counts for caller in callers), Counter())
    ran = Counter(mmap.mmap(fd, tasks)[:])
    have_run = tasks - ran[0]
    unlike = counts["done"] + counts["failed"] - have_run
    # An interrupt may hit submit() between its end and the list of Futures: such a task runs, and has none.
    lost = max(unlike, 0) if interrupts else abs(unlike)
    return {**counts, "ran": have_run, "doubled": have_run - ran[1], "lost": lost}


def build_name() -> str:
    """Return the name of the running build."""
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return f"{sys.version.split()[0]}{'t' if free else ''}"


def read_slices(path: Path) -> list[dict[str, Any]]:
    """Return the slices that were run."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_slices(given: argparse.Namespace) -> None:
    """Run slices until enough tasks of this build have run, or one hangs or crashes; each one's end is in the file."""
    while sum(each["ran"] for each in read_slices(given.file) if each["build"] == build_name()) < given.tasks:
        seed = random.randrange(10**6)
        command = [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--seed", str(seed)]
        began = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == -signal.SIGINT:
            raise KeyboardInterrupt
        found = json.loads(done.stdout) if done.returncode == 0 else {"ran": 0}
        line = {"build": build_name(), "seed": seed, "seconds": round(time.monotonic() - began), **found,
                "hung": int(done.returncode == HANGS), "crashed": int(done.returncode not in {0, HANGS})}
        with given.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if done.returncode:
            break


def print_sums(slices: list[dict[str, Any]]) -> bool:
    """Print a row for each build; return True if all is well."""
    columns = ("slices", "seconds", "ran", "cancelled", "interrupts", *FAULTS)
    sums: dict[str, Counter[str]] = {}
    for each in slices:
        sums.setdefault(each["build"], Counter()).update(
            {"slices": 1, **{name: each.get(name, 0) for name in columns[1:]}})
    print(f"{'build':16}" + "".join(f"{name:>12}" for name in columns))
    for build, counts in sorted(sums.items()):
        print(f"{build:16}" + "".join(f"{counts[name]:12}" for name in columns))
    return not any(counts[name] for counts in sums.values() for name in FAULTS)


def main() -> None:
    """Run what is left, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=10**7)
    parser.add_argument("--slice", type=int, default=250_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--callers", type=int, default=4)
    parser.add_argument("--beside", type=int, default=2, help="busy processes (default: 2)")
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        print(json.dumps(run_slice(given)))
        return
    run_slices(given)
    sys.exit(not print_sums(read_slices(given.file)))


if __name__ == "__main__":
    main()
