"""Every thread takes its numbers from one counter.

Repair: a counter for each thread, with a range of its own.
"""

import itertools

NUMBERS = itertools.count()


def f():
    for _ in range(100):
        next(NUMBERS)
