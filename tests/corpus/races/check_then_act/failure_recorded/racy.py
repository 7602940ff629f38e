# EXPECT: check-then-act | jobs | 13, 15
"""Each worker takes a job if there is one; the handler counts the failure that the check was to prevent."""

import threading

jobs = list(range(20))
failed = []


def work():
    while True:
        try:
            if not jobs:
                return
            jobs.pop()
        except IndexError as error:
            failed.append(error)


workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(len(jobs))
