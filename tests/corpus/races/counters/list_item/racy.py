# EXPECT: lost update | *hits[1] | 12, 12
"""A histogram kept in a list."""

from threading import Thread

hits = [0, 0, 0, 0]


def record(values):
    for value in values:
        bucket = value % len(hits)
        hits[bucket] += 1


left = Thread(target=record, args=(range(1, 30, 4),))
right = Thread(target=record, args=(range(5, 60, 4),))
left.start()
right.start()
left.join()
right.join()
print(len(hits), "buckets")
