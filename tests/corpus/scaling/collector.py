"""Every call makes so many containers that the collector stops all threads, again and again."""

import gc

KEEP = [{"number": number} for number in range(40_000)]


def f():
    made = [[] for _ in range(500)]
    gc.collect(0)
    return len(made)
