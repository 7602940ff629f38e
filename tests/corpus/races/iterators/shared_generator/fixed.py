# EXPECT: clean
"""next() on one generator from two threads."""

import threading


def count_up():
    number = 0
    while True:
        yield number
        number += 1


numbers = count_up()
numbers_lock = threading.Lock()


def draw(times, mine):
    for _ in range(times):
        with numbers_lock:
            mine.append(next(numbers))


drawn = [[], []]
threads = [threading.Thread(target=draw, args=(3, mine)) for mine in drawn]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("drawn")
