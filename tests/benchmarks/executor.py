"""Measure SubinterpreterExecutor beside the standard library's executors, in turn, in the Python that starts it.

PYTHON -m tests.benchmarks.executor [--rounds N] [--workers N] [--only NAME,...]

Prints a row for each measurement and a column for each executor: the median over the rounds.  Every round takes one
value of each, one after the other, so that on a busy machine a row can be compared where a figure cannot.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import threading
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

from gilscope import SubinterpreterExecutor
from tests.benchmarks import executor_tasks as tasks

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = 20_000          # of a row without work; a tenth for executors that take long
SLOW = ("interpreters", "processes")
MILLIONS = [*range(10**6)]
BULK = bytes(64 * 1024 * 1024)
NESTED = {f"{a}": {f"{b}": {f"{c}": {f"{d}": [1, 2] for d in range(8)} for c in range(8)} for b in range(8)}
          for a in range(8)}


def us_of_map(pool: futures.Executor, count: int) -> float:
    """Return the microseconds of a task of a map."""
    return timed(lambda: [*pool.map(tasks.square, range(count))]) / count * 1e6


def us_of_submit(pool: futures.Executor, count: int) -> float:
    """Return the microseconds of a task, submitted with others and gathered."""
    return timed(lambda: [each.result() for each in [pool.submit(tasks.square, n) for n in range(count)]]) / count * 1e6


def us_of_one(pool: futures.Executor, count: int) -> float:
    """Return the microseconds of a task that is waited for before the next."""
    count //= 20
    return timed(lambda: [pool.submit(tasks.square, n).result() for n in range(count)]) / count * 1e6


def done_beside_a_busy_caller(pool: futures.Executor, _count: int) -> float:
    """Return how many tasks of 1 ms are done while the caller computes for 200 ms."""
    sent = [pool.submit(time.sleep, 0.001) for _ in range(360)]
    end = time.perf_counter() + 0.2
    while time.perf_counter() < end:
        pass
    done = sum(each.done() for each in sent)
    futures.wait(sent)
    return done


def over_the_ideal(pool: futures.Executor, _count: int) -> float:
    """Return the time of 5,000 cheap tasks, 64 of 5 ms and 5,000 cheap ones, as a multiple of that of the 64."""
    lengths = [0.0] * 5000 + [0.005] * 64 + [0.0] * 5000
    return timed(lambda: [*pool.map(tasks.nap, lengths)]) / (64 * 0.005 / 2)


def ms_of(value: object) -> Callable[[futures.Executor, int], float]:
    """Return a function that measures the milliseconds until the length of a value that was sent has come back."""
    return lambda pool, _: timed(lambda: pool.submit(tasks.size_of, value).result()) * 1e3


def ms_of_view(pool: futures.Executor, count: int) -> float:
    """Return the milliseconds of handing over 64 MB as what the executor takes without copying, several times."""
    value: Any = BULK if isinstance(pool, futures.ProcessPoolExecutor) else memoryview(BULK)
    count //= 1000
    return timed(lambda: [pool.submit(tasks.size_of, value).result() for _ in range(count)]) / count * 1e3


def speedup(pool: futures.Executor, _count: int) -> float:
    """Return the speed-up of eight tasks of 25 ms over a loop."""
    loops = 25_000 * loops_per_us()
    serial = timed(lambda: [tasks.spin(loops) for _ in range(8)])
    return serial / timed(lambda: [*pool.map(tasks.spin, [loops] * 8)])


def cpu_us_of_map(pool: futures.Executor, count: int) -> float:
    """Return the processor microseconds of a task of a map, in all threads; NaN for other processes."""
    began = time.process_time()
    [*pool.map(tasks.square, range(count))]
    return float("nan") if name_of(pool) == "processes" else (time.process_time() - began) / count * 1e6


def loops_per_us() -> int:
    """Return the turns of `spin` that take a microsecond."""
    if not SPEED:
        SPEED.append(max(1, round(100_000 / (timed(lambda: tasks.spin(100_000)) * 1e6))))
    return SPEED[0]


def ms_of_start(pool: futures.Executor, _count: int) -> float:
    """Return the milliseconds of making such an executor, a task for each worker, and its end."""
    made = {"subinterpreters": SubinterpreterExecutor, "threads": futures.ThreadPoolExecutor,
            "interpreters": getattr(futures, "InterpreterPoolExecutor", None), "processes": processes}[name_of(pool)]
    began = time.perf_counter()
    with made(2) as other:
        [*other.map(tasks.square, range(2))]
    return (time.perf_counter() - began) * 1e3


ROWS: dict[str, Callable[[Any, int], float]] = {
    "map (us/task)": us_of_map,
    "submit (us/task)": us_of_submit,
    "one at a time (us)": us_of_one,
    "done while busy (of 360)": done_beside_a_busy_caller,
    "mixed lengths (x ideal)": over_the_ideal,
    "64 MB view in (ms)": ms_of_view,
    "64 MB bytes in (ms)": ms_of(BULK),
    "10^6 ints in (ms)": ms_of(MILLIONS),
    "4,681 dicts in (ms)": ms_of(NESTED),
    "speed-up, 25 ms tasks": speedup,
    "map (CPU us/task)": cpu_us_of_map,
    "start, use, stop (ms)": ms_of_start,
}
SPEED: list[int] = []


def timed(act: Callable[[], object]) -> float:
    """Return the seconds that an act takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def processes(workers: int) -> futures.ProcessPoolExecutor:
    """Return a pool of processes that a server forks, which has no interpreters."""
    return futures.ProcessPoolExecutor(workers, multiprocessing.get_context("forkserver"))


def name_of(pool: futures.Executor) -> str:
    """Return the column of an executor."""
    names = {"SubinterpreterExecutor": "subinterpreters", "ThreadPoolExecutor": "threads",
             "InterpreterPoolExecutor": "interpreters", "ProcessPoolExecutor": "processes"}
    return names[type(pool).__name__]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="rows that have one of these words")
    given = parser.parse_args()
    words = [word for word in given.only.split(",") if word]
    rows = [row for row in ROWS if not words or any(word in row for word in words)]
    pools: list[futures.Executor] = [processes(given.workers)]
    [*pools[0].map(time.sleep, [0.05] * given.workers)]        # all processes are there before the first interpreter
    pools += [futures.ThreadPoolExecutor(given.workers), SubinterpreterExecutor(given.workers)]
    if hasattr(futures, "InterpreterPoolExecutor"):
        pools.append(futures.InterpreterPoolExecutor(given.workers))
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(given.rounds + 1):
        for row in rows:
            for pool in pools:
                value = ROWS[row](pool, TASKS // (10 if name_of(pool) in SLOW else 1))
                if number:         # the first round imports modules in every worker
                    found.setdefault((row, name_of(pool)), []).append(value)
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{sys.version.split()[0]}{'t' if free else ''}, {given.workers} workers, median of {given.rounds} rounds")
    names = [name_of(pool) for pool in reversed(pools)]
    print(f"{'':26}" + "".join(f"{name:>17}" for name in names))
    for row in rows:
        print(f"{row:26}" + "".join(f"{statistics.median(found[row, name]):17.4g}" for name in names), flush=True)
    for pool in pools:
        pool.shutdown()
    assert threading.active_count() == 1, threading.enumerate()


if __name__ == "__main__":
    main()
