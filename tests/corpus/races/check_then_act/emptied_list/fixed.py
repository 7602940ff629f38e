# EXPECT: clean
"""A list and a deque are tested and read under the lock of who takes items; who only adds needs none."""

import threading
from collections import deque

stack, line, log, seen = ["last"], deque(["first"]), ["begun"], []
lock = threading.Lock()


def take():
    with lock:
        stack.pop()
        line.clear()


def add():
    log.append("more")


def peek():
    with lock:
        if stack:
            seen.append(stack[-1])
        if len(line) > 0:
            seen.append(line[0])
    if log:
        seen.append(log[0])


threads = [threading.Thread(target=target) for target in (take, add, peek)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(stack, list(line), log)
