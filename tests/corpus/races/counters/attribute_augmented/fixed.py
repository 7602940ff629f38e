# EXPECT: clean
"""A counter object that several workers increment."""

from threading import Lock, Thread


class Counter:
    def __init__(self):
        self.value = 0
        self.lock = Lock()

    def increment(self):
        with self.lock:
            self.value += 1


def worker(counter, times):
    for _ in range(times):
        counter.increment()


counter = Counter()
workers = [Thread(target=worker, args=(counter, 50), name=f"worker-{n}") for n in range(4)]
for each in workers:
    each.start()
for each in workers:
    each.join()
print("workers done:", len(workers), counter.value > 0)
