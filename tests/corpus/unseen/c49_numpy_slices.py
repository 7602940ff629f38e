# EXPECT: clean
import threading

import numpy as np

SIZE, PARTS = 24, 3
values = np.arange(SIZE, dtype=float)
squares = np.zeros(SIZE)
smooth = np.zeros(SIZE)
phase = threading.Barrier(PARTS)


def worker(low, high):
    squares[low:high] = values[low:high] ** 2
    squares[low:high] += 1
    phase.wait(5)
    for i in range(low, high):
        smooth[i] = squares[max(i - 1, 0)] + squares[min(i + 1, SIZE - 1)]


step = SIZE // PARTS
threads = [
    threading.Thread(target=worker, args=(low, low + step))
    for low in range(0, SIZE, step)
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(int(squares.sum()), int(smooth.sum()))
