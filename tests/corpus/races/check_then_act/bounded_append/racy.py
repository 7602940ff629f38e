# EXPECT: check-then-act | *backlog* | 12, 13
"""No more than ten entries."""

import threading

LIMIT = 10
backlog = []


def enqueue(items):
    for item in items:
        if len(backlog) < LIMIT:
            backlog.append(item)


producers = [threading.Thread(target=enqueue, args=(range(start, start + 3),)) for start in (0, 100)]
for producer in producers:
    producer.start()
for producer in producers:
    producer.join()
print("backlog:", len(backlog))
