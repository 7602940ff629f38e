# EXPECT: lost update | *failures* | 30
"""Workers with private queues; failing jobs are tried again."""
import queue
import threading
from collections import defaultdict


class Flaky(Exception):
    pass


class Job:
    def __init__(self, name, bad_tries):
        self.name = name
        self.bad_tries = bad_tries

    def run(self):
        if self.bad_tries:
            self.bad_tries -= 1
            raise Flaky("timeout")
        return self.name


class Monitor:
    def __init__(self):
        self.failures = defaultdict(int)

    def failed(self, error):
        reason = str(error)
        self.failures[reason] += 1


class Worker(threading.Thread):
    def __init__(self, monitor, jobs):
        super().__init__()
        self.monitor = monitor
        self.inbox = queue.Queue()
        for job in jobs:
            self.inbox.put(job)
        self.finished = []

    def run(self):
        while not self.inbox.empty():
            job = self.inbox.get()
            try:
                self.finished.append(job.run())
            except Flaky as error:
                self.monitor.failed(error)
                self.inbox.put(job)


def main():
    monitor = Monitor()
    workers = [
        Worker(monitor, [Job("mail", 2), Job("push", 0)]),
        Worker(monitor, [Job("thumb", 1), Job("index", 3)]),
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print([w.finished for w in workers], sorted(monitor.failures))


main()
