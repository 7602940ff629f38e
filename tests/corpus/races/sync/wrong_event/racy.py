# EXPECT: unsynchronised read/write | global answer in racy.py | 15, 23
"""The reader waits for the start of the computation, not for its end."""

import threading
import time

answer = None
started = threading.Event()
finished = threading.Event()


def compute():
    global answer
    started.set()
    answer = sum(range(10))
    finished.set()


worker = threading.Thread(target=compute)
worker.start()
while not started.is_set():
    time.sleep(0.001)
known = answer in (None, 45)
worker.join()
print("known:", known)
