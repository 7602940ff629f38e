# EXPECT: lost update | Metrics.reads | 16, 16
"""Attributes reached by name."""

import threading


class Metrics:
    reads = 0
    writes = 0


metrics = Metrics()


def bump(name):
    setattr(metrics, name, getattr(metrics, name) + 1)


def reader():
    for _ in range(10):
        bump("reads")


threads = [threading.Thread(target=reader) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(metrics.writes)
