# EXPECT: clean
"""Delayed tasks: a heap under a Condition, and sched for the final round."""
import heapq
import itertools
import sched
import threading


class Scheduler:
    def __init__(self):
        self._changed = threading.Condition()
        self._heap = []
        self._order = itertools.count()
        self._closed = False

    def add(self, when, task):
        with self._changed:
            heapq.heappush(self._heap, (when, next(self._order), task))
            self._changed.notify()

    def close(self):
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self):
        with self._changed:
            self._changed.wait_for(lambda: self._heap or self._closed)
            if not self._heap:
                return None
            return heapq.heappop(self._heap)[2]


def runner(scheduler, results):
    while (task := scheduler.take()) is not None:
        results.append(task())


def producer(scheduler, final, base):
    for n in range(5):
        scheduler.add(n, lambda value=base + n: value * value)
    final.enterabs(base, 1, print, argument=("final", base))


class FakeTime:
    def __init__(self):
        self.now = 0

    def time(self):
        return self.now

    def sleep(self, duration):
        self.now += duration


def main():
    scheduler = Scheduler()
    clock = FakeTime()
    final = sched.scheduler(clock.time, clock.sleep)
    results = []
    runners = [
        threading.Thread(target=runner, args=(scheduler, results)) for _ in range(2)
    ]
    producers = [
        threading.Thread(target=producer, args=(scheduler, final, base))
        for base in (10, 20)
    ]
    for t in runners + producers:
        t.start()
    for t in producers:
        t.join()
    scheduler.close()
    for t in runners:
        t.join()
    print(sorted(results))
    final.run()


main()
