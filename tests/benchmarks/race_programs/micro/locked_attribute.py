"""Four threads count in one attribute, under a lock."""

import threading


class Counter:
    def __init__(self):
        self.n = 0
        self.lock = threading.Lock()


def count(counter, times):
    for _ in range(times):
        with counter.lock:
            counter.n += 1


counter = Counter()
threads = [threading.Thread(target=count, args=(counter, 100_000)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", counter.n)
