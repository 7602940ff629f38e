# EXPECT: unsynchronised read/write | *results* | 10, 18
"""Two threads, and only one of them is joined before both results are read."""

import threading

results = [0, 0]


def work(index, numbers):
    results[index] = sum(numbers)


first = threading.Thread(target=work, args=(0, [1, 2]))
second = threading.Thread(target=work, args=(1, [3, 4]))
first.start()
second.start()
first.join()
known = results[1] in (0, 7)
second.join()
print(results, known)
