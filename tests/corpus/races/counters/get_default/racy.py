# EXPECT: lost update | *counts['b'] | 11, 11
"""The `counts[x] = counts.get(x, 0) + 1` idiom on a shared dict."""

import threading

counts = {}


def count_letters(text):
    for letter in text:
        counts[letter] = counts.get(letter, 0) + 1


threads = [threading.Thread(target=count_letters, args=("bbbb",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(list(counts))
