# EXPECT: unsynchronised read/write | Task.outcome | 20, 27
"""A worker answers through an attribute; the repair answers through a queue."""

import queue
import threading


class Task:
    def __init__(self, number):
        self.number = number
        self.outcome = None


inbox = queue.PriorityQueue()


def work():
    while (entry := inbox.get())[1] is not None:
        task = entry[1]
        task.outcome = task.number ** 2


worker = threading.Thread(target=work)
worker.start()
task = Task(7)
inbox.put((1, task))
early = task.outcome
inbox.put((2, None))
worker.join()
print(early in (None, 49), task.outcome)
