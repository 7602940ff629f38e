# EXPECT: clean
"""A queue asked whether it is empty before it is asked for an item."""

import queue
import threading

jobs = queue.Queue()
for number in range(8):
    jobs.put(number)


def work(times, done):
    for _ in range(times):
        try:
            done.append(jobs.get_nowait())
        except queue.Empty:
            return


finished = [[], []]
workers = [threading.Thread(target=work, args=(3, done)) for done in finished]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print("done:", len(finished[0]) + len(finished[1]))
