# EXPECT: clean
# EXPECT-NOTE: only the owner gives it back | Job.busy | 15, 17, 21
"""A busy flag that is taken by a test and a store under a lock, and given back by its owner."""

import threading


class Job:
    def __init__(self):
        self.lock = threading.Lock()
        self.busy = False

    def run(self):
        with self.lock:
            if self.busy:
                return
            self.busy = True
        try:
            threading.Event().wait(0.001)
        finally:
            self.busy = False


job = Job()
threads = [threading.Thread(target=lambda: [job.run() for _ in range(20)]) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(job.busy)
