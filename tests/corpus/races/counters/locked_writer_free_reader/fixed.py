# EXPECT: clean
"""Writers hold the lock, the display does not."""

import threading


class Progress:
    def __init__(self):
        self.done = 0
        self.lock = threading.Lock()

    def step(self):
        with self.lock:
            self.done += 1

    def percent(self, of):
        with self.lock:
            return 100 * self.done // of


progress = Progress()
seen = []


def work():
    for _ in range(10):
        progress.step()


worker = threading.Thread(target=work)
display = threading.Thread(target=lambda: seen.append(progress.percent(10)))
worker.start()
display.start()
worker.join()
display.join()
print("display showed", len(seen), "value")
