# EXPECT: clean
"""Threads lock one file, each through a descriptor of its own."""

import fcntl
import tempfile
import threading

folder = tempfile.TemporaryDirectory()
totals = {"n": 0}


def add(name):
    path = f"{folder.name}/lock"
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for _ in range(3):
            totals["n"] += 1
        fcntl.flock(file, fcntl.LOCK_UN)


threads = [threading.Thread(target=add, args=(name,)) for name in ("one", "other")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
folder.cleanup()
print(totals["n"] > 0)
