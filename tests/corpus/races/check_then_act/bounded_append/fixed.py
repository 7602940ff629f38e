# EXPECT: clean
"""No more than ten entries."""

import threading

LIMIT = 10
backlog = []
lock = threading.Lock()


def enqueue(items):
    for item in items:
        with lock:
            if len(backlog) < LIMIT:
                backlog.append(item)


producers = [threading.Thread(target=enqueue, args=(range(start, start + 3),)) for start in (0, 100)]
for producer in producers:
    producer.start()
for producer in producers:
    producer.join()
print("backlog:", len(backlog))
