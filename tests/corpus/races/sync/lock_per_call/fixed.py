# EXPECT: clean
"""A lock made anew in every call protects nothing."""

import threading

visits = 0
lock = threading.Lock()


def visit():
    global visits
    with lock:
        visits += 1


visitors = [threading.Thread(target=visit) for _ in range(3)]
for visitor in visitors:
    visitor.start()
for visitor in visitors:
    visitor.join()
print("visited", visits > 0)
