# EXPECT: check-then-act | *locks['a'] | 11, 12, 13
"""A lock per key: made if missing, or by setdefault."""

import threading

names = ["a"]
locks = {}


def lock_of(key):
    if key not in locks:
        locks[key] = threading.Lock()
    return locks[key]


def count(key, times):
    counted = 0     # its own: where each has made a lock, what they share is not guarded either
    for _ in range(times):
        with lock_of(key):
            counted += 1


counters = [threading.Thread(target=count, args=("a", 5)) for _ in range(2)]
for counter in counters:
    counter.start()
for counter in counters:
    counter.join()
print(sorted(locks) == names)
