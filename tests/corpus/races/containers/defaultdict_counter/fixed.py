# EXPECT: clean
"""Counting with defaultdict: `+=` loads, adds and stores, whether or not the key is new."""

import threading
from collections import defaultdict

counts = defaultdict(int)
lock = threading.Lock()


def count(numbers):
    for number in numbers:
        key = "odd" if number % 2 else "even"
        with lock:
            counts[key] += 1


threads = [threading.Thread(target=count, args=(numbers,)) for numbers in ([2, 4], [6, 8])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(counts))
