# EXPECT: clean
"""Words counted in one dict by two threads."""

import threading

counts = dict.fromkeys(["the", "cat", "dog"], 0)
counts_lock = threading.Lock()


def tally(words):
    for word in words:
        if word in counts:
            with counts_lock:
                counts[word] += 1


lines = ["the cat and the mouse", "the dog and the cat"]
threads = [threading.Thread(target=tally, args=(line.split(),)) for line in lines]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(counts))
