# EXPECT: clean
"""A lock per key: made if missing, or by setdefault."""

import threading

counts = {"a": 0, "b": 0}
locks = {}


def lock_of(key):
    return locks.setdefault(key, threading.Lock())


def count(key, times):
    for _ in range(times):
        with lock_of(key):
            counts[key] += 1


counters = [threading.Thread(target=count, args=("a", 5)) for _ in range(2)]
for counter in counters:
    counter.start()
for counter in counters:
    counter.join()
print(sorted(locks), counts["b"])
