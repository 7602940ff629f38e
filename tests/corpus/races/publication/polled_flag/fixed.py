# EXPECT-NOTE: flag polled | Worker.stopping | 21, 15
"""A flag that is polled; what goes with it has to be written before it."""

import threading
import time


class Worker(threading.Thread):
    def __init__(self):
        super().__init__()
        self.stopping = False
        self.reason = ""

    def run(self):
        while not self.stopping:
            time.sleep(0.001)
        self.farewell = len(self.reason) >= 0

    def stop(self, reason):
        self.reason = reason
        self.stopping = True


worker = Worker()
worker.start()
worker.stop("enough")
worker.join()
print(worker.farewell, worker.reason)
