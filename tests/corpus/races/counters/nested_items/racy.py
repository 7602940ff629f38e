# EXPECT: lost update | *[1] | 11, 11
"""A grid of counts: a list in a list."""

import threading

grid = [[0, 0], [0, 0]]


def visit(cells):
    for row, column in cells:
        grid[row][column] += 1


walkers = [threading.Thread(target=visit, args=([(0, 1)] * 10,)) for _ in range(2)]
for walker in walkers:
    walker.start()
for walker in walkers:
    walker.join()
print("walked", len(grid))
