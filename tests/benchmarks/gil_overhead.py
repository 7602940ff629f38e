"""Measure the overhead of the shim: run programs alternately with and without it.

    python -m tests.benchmarks.gil_overhead [--rounds 21] [--only count] BUILD...      # labels, or LABEL=PATH
"""

import argparse
import os
import subprocess
import tempfile

from gilscope.toolkit.gil import preload
from gilscope.toolkit.stats.paired import PairedArms
from tests.benchmarks.common import build_of

# Every program does a fixed amount of work and prints its wall and CPU seconds.
PROGRAM = """
import json, queue, socket, sys, threading, time
def count():
    for _ in range(4_000_000): pass
def call():
    def each(x): return x
    for x in range(1_500_000): each(x)
def lock_it():
    for _ in range(400_000):
        with lock: pass
def read():
    while left.recv(1): left.sendall(b"x")
def write():
    for _ in range(20_000):
        right.sendall(b"x"); right.recv(1)
    right.close()
def put():
    for x in range(60_000): passed.put(x)
def parse():
    for _ in range(4): json.loads(text)
    parsed.append(1)
def tick():
    while not parsed: time.sleep(0.001)
def get():
    for x in range(60_000): passed.get()
text, parsed = "[" + "[1, 2.5], " * 300_000 + "0]", []
lock, passed, (left, right) = threading.Lock(), queue.Queue(100), socket.socketpair()
work = {"count, 1 thread": [count] * 1, "count, 2 threads": [count] * 2, "count, 4 threads": [count] * 4,
        "calls, 2 threads": [call] * 2, "a lock, 2 threads": [lock_it] * 2, "ping-pong": [read, write],
        "parse, a ticker": [parse, tick], "a queue": [put, get]}[sys.argv[1]]
threads = [threading.Thread(target=each) for each in work]
wall, cpu = time.perf_counter(), time.process_time()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
PROGRAMS = ("count, 1 thread", "count, 2 threads", "count, 4 threads", "calls, 2 threads", "a lock, 2 threads",
            "ping-pong", "parse, a ticker", "a queue")
LIMIT = 120   # seconds


def main() -> None:
    """Print the overhead of each program on each build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--rounds", type=int, default=21, metavar="N")
    parser.add_argument("--only", default="", metavar="START", help="programs whose name starts so")
    args = parser.parse_args()
    print(f"{'build':8}{'program':20}{'more CPU time':>26}{'more wall time':>26}")
    for build in map(build_of, args.builds):
        for name in (each for each in PROGRAMS if each.startswith(args.only)):
            rounds = [_round(build.executable, name, number) for number in range(args.rounds)]
            wall, cpu = (
                PairedArms({arm: {index: each[arm][kind] for index, each in enumerate(rounds)} for arm in (0, 1)})
                .compare(1, 0) for kind in (0, 1))
            shown = "".join(f"{f'{each.ratio - 1:+.1%} [{each.lo - 1:+.1%}, {each.hi - 1:+.1%}]':>26}"
                            for each in (cpu, wall))
            print(f"{build.label:8}{name:20}{shown}", flush=True)


def _round(python: str, name: str, number: int) -> tuple[list[float], list[float]]:
    """Return wall and CPU seconds without and with the shim; the order alternates."""
    found = {watched: _run(python, name, watched=watched) for watched in (number % 2 == 0, number % 2 == 1)}
    return found[False], found[True]


def _run(python: str, name: str, *, watched: bool) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="gilscope-") as folder:
        environment = os.environ | (preload.environment(folder) if watched else {})
        run = subprocess.run([python, "-I", "-S", "-c", PROGRAM, name], env=environment, capture_output=True,
                             text=True, check=True, timeout=LIMIT)
    return [float(each) for each in run.stdout.split()]


if __name__ == "__main__":
    main()
