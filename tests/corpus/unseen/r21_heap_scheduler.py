# EXPECT: check-then-act | *_heap* | 20, 24 | atomicity
"""Priority scheduler with two runners."""
import heapq
import itertools
import threading


class Scheduler:
    def __init__(self):
        self._lock = threading.Lock()
        self._heap = []
        self._order = itertools.count()

    def add(self, when, task):
        with self._lock:
            heapq.heappush(self._heap, (when, next(self._order), task))

    def due(self, now):
        with self._lock:
            return bool(self._heap) and self._heap[0][0] <= now

    def pop(self):
        with self._lock:
            return heapq.heappop(self._heap)[2]


class Runner(threading.Thread):
    def __init__(self, scheduler, ticks):
        super().__init__()
        self.scheduler = scheduler
        self.ticks = ticks
        self.done = 0

    def run(self):
        for now in range(self.ticks):
            if self.scheduler.due(now):
                task = self.scheduler.pop()
                task()
                self.done += 1


def task():
    return sum(range(10))


def main():
    scheduler = Scheduler()
    for _ in range(40):
        scheduler.add(0, task)
    runners = [Runner(scheduler, 10), Runner(scheduler, 10)]
    for r in runners:
        r.start()
    for r in runners:
        r.join()
    print(sum(r.done for r in runners))


main()
