"""A scheduler of jobs with priorities and dependencies, and workers that wait for something to be ready."""

import heapq
import threading
from dataclasses import dataclass, field


@dataclass(order=True)
class Job:
    priority: int
    number: int
    needs: tuple = field(compare=False, default=())
    state: str = field(compare=False, default="waiting")
    result: int = field(compare=False, default=0)


class Scheduler:
    def __init__(self, jobs):
        self.jobs = {job.number: job for job in jobs}
        self.missing = {job.number: len(job.needs) for job in jobs}
        self.wanted_by = {job.number: [] for job in jobs}
        for job in jobs:
            for needed in job.needs:
                self.wanted_by[needed].append(job.number)
        self.ready = [job for job in jobs if not job.needs]
        heapq.heapify(self.ready)
        self.unfinished = len(jobs)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)

    def next_job(self):
        with self.changed:
            while not self.ready and self.unfinished:
                self.changed.wait()
            if not self.unfinished:
                return None
            job = heapq.heappop(self.ready)
            job.state = "running"
            return job

    def finish(self, job, result):
        with self.changed:
            job.state = "done"
            job.result = result
            self.unfinished -= 1
            released = 0
            for number in self.wanted_by[job.number]:
                self.missing[number] -= 1
                if self.missing[number] == 0:
                    heapq.heappush(self.ready, self.jobs[number])
                    released += 1
            if self.unfinished == 0:
                self.changed.notify_all()
            elif released > 1:
                self.changed.notify(released - 1)

    def inputs(self, job):
        with self.lock:
            return [self.jobs[number].result for number in job.needs]


def execute(job, inputs):
    value = job.number + 1
    for step in range(200):
        value = (value * 16_807 + step + sum(inputs)) % 2_147_483_647
    return value


def work(scheduler, counts, index):
    while (job := scheduler.next_job()) is not None:
        result = execute(job, scheduler.inputs(job))
        scheduler.finish(job, result)
        counts[index] += 1


def make_jobs(count):
    for number in range(count):
        needs = tuple(sorted({number // 2, number * 3 // 4} - {number})) if number > 3 else ()
        yield Job(priority=number * 37 % 11, number=number, needs=needs)


def main():
    scheduler = Scheduler(list(make_jobs(3_000)))
    counts = [0] * 4
    workers = [
        threading.Thread(target=work, args=(scheduler, counts, index), name=f"worker-{index}") for index in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    checksum = sum(job.result for job in scheduler.jobs.values()) % 1_000_000_007
    print("checksum", checksum, sum(counts), {job.state for job in scheduler.jobs.values()})


if __name__ == "__main__":
    main()
