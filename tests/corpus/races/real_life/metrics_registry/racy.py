# EXPECT: lost update | Histogram.count | 16, 16
# EXPECT: lost update | Histogram.sum | 17, 17
"""Request times in a histogram."""

from threading import Lock, Thread


class Histogram:
    def __init__(self, bounds):
        self.bounds = bounds
        self.count = 0
        self.sum = 0.0
        self.lock = Lock()

    def observe(self, seconds):
        self.count += 1
        self.sum += seconds


METRICS = {"requests": Histogram((0.1, 1.0)), "queries": Histogram((0.01, 0.1))}


def handle(times):
    for seconds in times:
        METRICS["requests"].observe(seconds)


handlers = [Thread(target=handle, args=([0.2, 0.4],), name=f"handler-{n}") for n in range(2)]
for handler in handlers:
    handler.start()
for handler in handlers:
    handler.join()
print(sorted(METRICS), METRICS["requests"].count > 0, METRICS["queries"].count)
