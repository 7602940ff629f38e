# EXPECT: lost update | *totals[* | 12, 12
"""One slot per thread needs no lock, one slot per two threads does."""

import threading

WORKERS = 4
totals = [0] * (WORKERS // 2)


def add_up(slot, numbers):
    for number in numbers:
        totals[slot] += number


threads = [threading.Thread(target=add_up, args=(index // 2, range(10))) for index in range(WORKERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("added", sum(totals) > 0)
