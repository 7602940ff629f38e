# EXPECT-NOTE: the failure is caught | jobs | 12, 14
"""Each worker takes a job if there is one; another one may have taken the last since."""

import threading

jobs = list(range(20))


def work():
    while True:
        try:
            if not jobs:
                return
            jobs.pop()
        except IndexError:
            continue


workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(len(jobs))
