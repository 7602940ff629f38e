# EXPECT: clean
"""A collections.Counter shared by its counting threads."""

import threading
from collections import Counter

parts = []


def count(text):
    parts.append(Counter(text.split()))


threads = [threading.Thread(target=count, args=("a a a",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
words = sum(parts, Counter())
print(list(words))
