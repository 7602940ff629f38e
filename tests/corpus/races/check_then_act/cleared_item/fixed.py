# EXPECT: clean
"""A loop takes an item once, tests and uses what it has taken; another thread stores None in its place."""

import threading

jobs = {"next": ["first"]}
done = []


def stop():
    jobs["next"] = None


def work():
    while (job := jobs["next"]) is not None and not done:
        done.append(job[0])


threads = [threading.Thread(target=work), threading.Thread(target=stop)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(jobs, len(done) < 2)
