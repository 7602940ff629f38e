# EXPECT: lost update | *words['a'] | 12, 12
"""A collections.Counter shared by its counting threads."""

import threading
from collections import Counter

words = Counter(a=0)


def count(text):
    for word in text.split():
        words[word] += 1


threads = [threading.Thread(target=count, args=("a a a",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(list(words))
