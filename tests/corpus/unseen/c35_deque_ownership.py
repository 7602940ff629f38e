# EXPECT: clean
import threading
import time
from collections import deque

belt = deque()
finished = []


def first(count):
    for n in range(count):
        cake = {"n": n, "layers": []}
        cake["layers"].append("base")
        belt.append(cake)
    belt.append(None)


def second():
    while True:
        try:
            cake = belt.popleft()
        except IndexError:
            time.sleep(0.001)
            continue
        if cake is None:
            return
        cake["layers"].append("cream")
        cake["n"] += 1
        finished.append(cake)


threads = [threading.Thread(target=first, args=(5,)), threading.Thread(target=second)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(finished[0], len(finished))
