"""Four threads count in one attribute, without a lock: a race."""

import threading


class Counter:
    def __init__(self):
        self.n = 0


def count(counter, times):
    for _ in range(times):
        counter.n += 1


counter = Counter()
threads = [threading.Thread(target=count, args=(counter, 400_000)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", counter.n > 0)
