"""Wait in a map that takes minutes, and leave as a measuring process does when Ctrl-C ends it.

python interrupted.py RUNNER MARKER: every worker creates a file MARKER.<n> when its task has begun.
"""

import os
import sys

from gilscope.runners.catalog import find
from tests.conformance import tasks


def main(name, marker):
    runner = find(name)
    if reason := runner.unavailable():
        print("n/a:", reason)
        return
    workers = 1 if name == "serial" else 2
    task = tasks.mark_and_sleep_async if runner.awaits else tasks.mark_and_sleep
    try:
        with runner.pool(workers) as pool:
            pool.map(task, [f"{marker}.{n}" for n in range(workers)])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(0)  # a thread may still run: see TeardownError


if __name__ == "__main__":
    main(*sys.argv[1:])
