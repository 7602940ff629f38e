# EXPECT: lost update | *levels[2] | 12, 12
"""Numbers in an array.array."""

import threading
from array import array

levels = array("l", [0] * 4)


def raise_level(index, times):
    for _ in range(times):
        levels[index] += 1


pumps = [threading.Thread(target=raise_level, args=(2, 10)) for _ in range(2)]
for pump in pumps:
    pump.start()
for pump in pumps:
    pump.join()
print(levels[0], levels[1], levels[3])
