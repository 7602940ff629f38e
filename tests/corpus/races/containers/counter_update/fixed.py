# EXPECT: clean
"""Counter.update adds key by key: it is no atomic dict.update."""

import threading
from collections import Counter

seen = Counter()
lock = threading.Lock()


def watch(birds):
    for _ in range(3):
        with lock:
            seen.update(birds)


watchers = [threading.Thread(target=watch, args=(["owl", "jay", "owl"],)) for _ in range(2)]
for watcher in watchers:
    watcher.start()
for watcher in watchers:
    watcher.join()
print(sorted(seen))
