# EXPECT: check-then-act | *groups['even'] | 13, 13
"""Grouping with defaultdict, whose missing key is looked up, made and stored in steps."""

import threading
from collections import defaultdict

groups = defaultdict(list)


def group(numbers):
    for number in numbers:
        key = "odd" if number % 2 else "even"
        groups[key].append(number)


threads = [threading.Thread(target=group, args=(numbers,)) for numbers in ([2, 4], [6, 8])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(groups))
