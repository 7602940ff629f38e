# EXPECT: lost update | Batch.done | 17, 20
# EXPECT: unsynchronised read/write | Batch.numbered | 25, 26
"""A counter without a lock, of which a predicate asks for the progress; and one whose numbers may come twice."""

import threading


class Batch:
    def __init__(self, total):
        self.total = total
        self.done = 0
        self.numbered = 0
        self.names = []
        self.lock = threading.Lock()

    def step(self):
        self.done += 1

    def is_running(self):
        return self.done < self.total

    def number(self):
        for _ in range(2):
            with self.lock:
                self.numbered += 1
            self.names.append(f"job {self.numbered}")


batch = Batch(3)
threads = [threading.Thread(target=target) for target in (batch.step, batch.step, batch.is_running,
                                                         batch.number, batch.number)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(0 < batch.done < 3, len(batch.names))
