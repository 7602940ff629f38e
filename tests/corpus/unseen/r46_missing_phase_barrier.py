# EXPECT: unsynchronised read/write | *squares* | 12, 15
import threading
from array import array

SIZE = 12
squares = array("l", [0] * SIZE)
sums = {}


def worker(name, low, high):
    for i in range(low, high):
        squares[i] = i * i
    total = 0
    for i in range(SIZE):
        total += squares[i]
    sums[name] = total


threads = [
    threading.Thread(target=worker, args=("low", 0, SIZE // 2)),
    threading.Thread(target=worker, args=("high", SIZE // 2, SIZE)),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(sums), sum(squares))
