# EXPECT: unsynchronised read/write or lost update | Progress.finished | 13, 16
"""Callbacks run in the workers, the main thread counts too."""

import threading
from concurrent.futures import ThreadPoolExecutor


class Progress:
    def __init__(self):
        self.finished = 0

    def task_done(self, future):
        self.finished += 1

    def percent(self, tasks):
        return 100 * self.finished // tasks


progress = Progress()
gate = threading.Event()
with ThreadPoolExecutor(max_workers=2) as executor:
    for _ in range(4):
        executor.submit(gate.wait).add_done_callback(progress.task_done)
    gate.set()
    shown = progress.percent(4)
print(shown <= 100)
