# EXPECT: unsynchronised read/write | *grid[* | 12, 16
"""One thread writes a row, another reads a cell of it."""

import threading

import numpy as np

grid = np.zeros((4, 4))


def fill(row):
    grid[row] = 1.0


def look(row, column, out):
    out.append(float(grid[row, column]) in (0.0, 1.0))


seen = []
filling = threading.Thread(target=fill, args=(2,))
looking = threading.Thread(target=look, args=(2, 1, seen))
filling.start()
looking.start()
filling.join()
looking.join()
print(seen, float(grid.sum()))
