# EXPECT: check-then-act | *stack | 12, 17, 18
# EXPECT: check-then-act | *line | 13, 19, 20
"""A list and a deque are tested, and then their ends are read, while another thread takes the last item."""

import threading
from collections import deque

stack, line, seen = ["last"], deque(["first"]), []


def take():
    stack.pop()
    line.clear()


def peek():
    if stack:
        seen.append(stack[-1])
    if len(line) > 0:
        seen.append(line[0])


threads = [threading.Thread(target=target) for target in (take, peek)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(stack, list(line))
