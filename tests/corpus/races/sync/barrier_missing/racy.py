# EXPECT: unsynchronised read/write | *cells* | 12, 13
"""Two phases: everybody writes a cell, then everybody reads the neighbour's."""

import threading

PARTIES = 3
cells = [0] * PARTIES
sums = [0] * PARTIES


def simulate(index):
    cells[index] = index + 1
    sums[index] = cells[index] + cells[(index + 1) % PARTIES]


threads = [threading.Thread(target=simulate, args=(index,)) for index in range(PARTIES)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(cells, all(sums))
