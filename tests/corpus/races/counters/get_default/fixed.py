# EXPECT: clean
"""The `counts[x] = counts.get(x, 0) + 1` idiom on a shared dict."""

import threading
from collections import Counter

counts = Counter()
merging = threading.Lock()


def count_letters(text):
    local = Counter()
    for letter in text:
        local[letter] += 1
    with merging:
        for letter, times in local.items():
            counts[letter] += times


threads = [threading.Thread(target=count_letters, args=("bbbb",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(list(counts))
