# EXPECT: lost update | Sum.value | 18, 18
"""multiprocessing.pool.ThreadPool runs threads too."""

import threading
from multiprocessing.pool import ThreadPool


class Sum:
    value = 0


result = Sum()
together = threading.Barrier(2)


def add(number):
    together.wait()
    result.value += number


with ThreadPool(2) as pool:
    pool.map(add, [1, 2], chunksize=1)
print("added", result.value > 0)
