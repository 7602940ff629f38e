# EXPECT: clean
"""multiprocessing.pool.ThreadPool runs threads too."""

import threading
from multiprocessing.pool import ThreadPool


class Sum:
    value = 0


result = Sum()
lock = threading.Lock()
together = threading.Barrier(2)


def add(number):
    together.wait()
    with lock:
        result.value += number


with ThreadPool(2) as pool:
    pool.map(add, [1, 2], chunksize=1)
print("added", result.value > 0)
