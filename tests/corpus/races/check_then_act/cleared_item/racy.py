# EXPECT: check-then-act | *jobs['next'] | 11, 15, 16
"""A loop goes on while an item is there, and uses the item; another thread stores None in its place."""

import threading

jobs = {"next": ["first"]}
done = []


def stop():
    jobs["next"] = None


def work():
    while jobs["next"] is not None and not done:
        done.append(jobs["next"][0])


threads = [threading.Thread(target=work), threading.Thread(target=stop)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(jobs, len(done) < 2)
