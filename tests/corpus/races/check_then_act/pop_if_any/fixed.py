# EXPECT: clean
"""Is there a task left?  Then pop it."""

import threading

tasks = [f"task {number}" for number in range(12)]


def take(limit, mine):
    for _ in range(limit):
        try:
            mine.append(tasks.pop())
        except IndexError:
            return


taken = [[], []]
workers = [threading.Thread(target=take, args=(6, mine)) for mine in taken]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print("left:", len(tasks))
