# EXPECT: check-then-act | Job.busy | 15, 17, 23
"""A busy flag that is taken under a lock, and given back by a thread that does not own it."""

import threading


class Job:
    def __init__(self):
        self.lock = threading.Lock()
        self.busy = False
        self.runs = 0

    def run(self):
        with self.lock:
            if self.busy:
                return
            self.busy = True
        threading.Event().wait(0.001)
        self.free()

    def free(self):
        # anybody may call this
        self.busy = False


job = Job()
threads = [threading.Thread(target=target) for target in (job.run, job.run, job.free)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(job.busy)
