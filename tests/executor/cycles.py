"""Open and close executors of two interpreters, again and again: `PYTHON -m tests.executor.cycles COUNT`.

Prints JSON: the descriptors and threads that are left, and the KB of memory that each interpreter left behind.
"""

import json
import os
import sys
import threading
from pathlib import Path

from gilscope import SubinterpreterExecutor
from tests.executor.tasks import square

WORKERS = 2


def use():
    with SubinterpreterExecutor(WORKERS) as executor:
        assert list(executor.map(square, range(9))) == [n * n for n in range(9)]


def left():
    return len([*Path("/proc/self/fd").iterdir()]), threading.active_count()


def resident_kb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


if __name__ == "__main__":
    count = int(sys.argv[1])
    use()
    before, kb = left(), resident_kb()
    for _ in range(count - 1):
        use()
    fds, threads = (after - first for after, first in zip(left(), before, strict=True))
    print(json.dumps({"descriptors": fds, "threads": threads,
                      "kept_kb": (resident_kb() - kb) // (WORKERS * (count - 1))}))
