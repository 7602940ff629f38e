# EXPECT: lost update | *counts['even']* | 13, 13
"""Counting with defaultdict: `+=` loads, adds and stores, whether or not the key is new."""

import threading
from collections import defaultdict

counts = defaultdict(int)


def count(numbers):
    for number in numbers:
        key = "odd" if number % 2 else "even"
        counts[key] += 1


threads = [threading.Thread(target=count, args=(numbers,)) for numbers in ([2, 4], [6, 8])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(counts))
