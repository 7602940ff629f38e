"""A script without a main guard; its workers must not run it again: python unguarded.py RUNNER."""

import sys

from gilscope.runners.catalog import find
from tests.conformance import tasks

print("top level", flush=True)
runner = find(sys.argv[1])
if runner.unavailable() is None:
    with runner.pool(2) as pool:
        print(pool.map(tasks.square, [1, 2, 3]), flush=True)
