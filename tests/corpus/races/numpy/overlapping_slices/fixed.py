# EXPECT: clean
"""Rows worked on in blocks; the blocks of the racy twin share a row."""

import threading

import numpy as np

image = np.ones((8, 4))


def brighten(first, last):
    image[first:last] *= 2


blocks = [(0, 4), (4, 8)]
threads = [threading.Thread(target=brighten, args=block) for block in blocks]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(float(image[0, 0]), float(image[7, 3]))
