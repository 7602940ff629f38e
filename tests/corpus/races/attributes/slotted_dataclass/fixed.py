# EXPECT: clean
"""A dataclass with slots=True, retried from two threads."""

import threading
from dataclasses import dataclass


@dataclass(slots=True)
class Job:
    name: str
    attempts: int = 0


job = Job("backup")
attempts_lock = threading.Lock()


def attempt():
    for _ in range(3):
        with attempts_lock:
            job.attempts = job.attempts + 1


threads = [threading.Thread(target=attempt) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(job.name, "ran")
