# EXPECT: clean
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
second.join()
known = results[1] in (0, 7)
print(results, known)
