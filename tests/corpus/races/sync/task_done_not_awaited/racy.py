# EXPECT: unsynchronised read/write | Tally.words | 20, 27
"""queue.join() waits until every item is done; without it the tally is read too early."""

import queue
import threading


class Tally:
    def __init__(self):
        self.words = 0


lines = queue.Queue()
tally = Tally()


def count():
    while True:
        line = lines.get()
        tally.words += len(line.split())
        lines.task_done()


threading.Thread(target=count, daemon=True).start()
for line in ["one two", "three", "four five six"]:
    lines.put(line)
enough = tally.words >= 0
lines.join()
print(enough)
