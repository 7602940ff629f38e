# EXPECT: unsynchronised read/write | Job.priority | 22, 32
"""A job is changed after it went into the deque."""

import threading
import time
from collections import deque


class Job:
    def __init__(self, name):
        self.name = name
        self.priority = 0


jobs = deque()


def plan(names):
    for name in names:
        job = Job(name)
        jobs.append(job)
        job.priority = len(name)


def execute(count, done):
    while len(done) < count:
        try:
            job = jobs.popleft()
        except IndexError:
            time.sleep(0.001)
            continue
        done.append((job.name, job.priority >= 0))


executed = []
planner = threading.Thread(target=plan, args=(["wash", "dry"],))
executor = threading.Thread(target=execute, args=(2, executed))
planner.start()
executor.start()
planner.join()
executor.join()
print(executed)
