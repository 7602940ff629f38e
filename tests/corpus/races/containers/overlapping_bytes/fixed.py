# EXPECT: clean
"""A byte buffer filled in halves; the halves of the racy twin overlap."""

import threading

frame = bytearray(8)


def fill(start, stop, value):
    for index in range(start, stop):
        frame[index] = value


half = len(frame) // 2
lower = threading.Thread(target=fill, args=(0, half, 1))
upper = threading.Thread(target=fill, args=(half, len(frame), 2))
lower.start()
upper.start()
lower.join()
upper.join()
print(frame[:half], frame[half + 1:])
