# EXPECT: clean
"""A histogram in a NumPy array."""

import threading

import numpy as np

histogram = np.zeros(8, dtype=int)
lock = threading.Lock()


def count(values):
    for value in values:
        with lock:
            histogram[value] += 1


threads = [threading.Thread(target=count, args=([3, 3, 3],)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(int(histogram[0]), int(histogram[3]) > 0)
