# EXPECT: clean
"""One thread writes a row, another reads a cell of it."""

import threading

import numpy as np

grid = np.zeros((4, 4))
lock = threading.Lock()


def fill(row):
    with lock:
        grid[row] = 1.0


def look(row, column, out):
    with lock:
        out.append(float(grid[row, column]) in (0.0, 1.0))


seen = []
filling = threading.Thread(target=fill, args=(2,))
looking = threading.Thread(target=look, args=(2, 1, seen))
filling.start()
looking.start()
filling.join()
looking.join()
print(seen, float(grid.sum()))
