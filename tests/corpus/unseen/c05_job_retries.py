# EXPECT: clean
"""Daemon workers; a failing job goes back to the queue with its try count."""
import queue
import threading


class Job:
    def __init__(self, name, failures):
        self.name = name
        self.failures = failures
        self.tries = 0

    def run(self):
        self.tries += 1
        if self.tries <= self.failures:
            raise OSError("not yet")
        return self.name, self.tries


class JobQueue:
    def __init__(self, workers):
        self._queue = queue.Queue()
        self._done_lock = threading.Lock()
        self._done = []
        for number in range(workers):
            threading.Thread(
                target=self._work, name="worker-%d" % number, daemon=True
            ).start()

    def _work(self):
        while True:
            job = self._queue.get()
            try:
                result = job.run()
            except OSError:
                self._queue.put(job)
            else:
                with self._done_lock:
                    self._done.append(result)
            finally:
                self._queue.task_done()

    def submit(self, job):
        self._queue.put(job)

    def finish(self):
        self._queue.join()
        return sorted(self._done)


def main():
    jobs = [Job("mail", 0), Job("push", 2), Job("index", 1), Job("thumb", 3)]
    runner = JobQueue(3)
    for job in jobs:
        runner.submit(job)
    print(runner.finish())
    print([job.tries for job in jobs])


main()
