# EXPECT: clean
# EXPECT-NOTE: the number only grows | Batch.done | 17, 20
# EXPECT-NOTE: the number only grows | Batch.done | 17, 24
"""A counter with a lock, of which a predicate asks for the progress, and a loop shows it."""

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

    def show(self):
        for _ in range(2):
            lines.append(f"{self.done} of {self.total}")


batch, lines = Batch(3), []
threads = [threading.Thread(target=target) for target in (batch.step, batch.step, batch.is_running, batch.show)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(0 < batch.done < 3, len(lines))
