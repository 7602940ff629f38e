# EXPECT: clean
# EXPECT-NOTE: the number only grows | Batch.done | 16, 19
"""A counter with a lock, of which a predicate asks for the progress."""

import threading


class Batch:
    def __init__(self, total):
        self.total = total
        self.done = 0
        self.lock = threading.Lock()

    def step(self):
        with self.lock:
            self.done += 1

    def is_running(self):
        return self.done < self.total


batch = Batch(3)
threads = [threading.Thread(target=target) for target in (batch.step, batch.step, batch.is_running)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(0 < batch.done < 3)
