# EXPECT: lost update | LRU.hits | 23
"""LRU cache for rendered pages."""
import threading
from collections import OrderedDict

MISSING = object()


class LRU:
    def __init__(self, capacity):
        self.capacity = capacity
        self._lock = threading.RLock()
        self._data = OrderedDict()
        self.hits = 0

    def get(self, key, default=None):
        with self._lock:
            value = self._data.get(key, MISSING)
            if value is not MISSING:
                self._data.move_to_end(key)
        if value is MISSING:
            return default
        self.hits += 1
        return value

    def put(self, key, value):
        with self._lock:
            self._data[key] = value
            self._data.move_to_end(key)
            while len(self._data) > self.capacity:
                self._data.popitem(last=False)

    def __len__(self):
        with self._lock:
            return len(self._data)


def render(number):
    return "<p>%d</p>" % number


def visitor(cache, pages, seen):
    for page in pages:
        seen.append(cache.get(page))


def main():
    cache = LRU(16)
    for number in range(8):
        cache.put(number, render(number))
    seen = [[], []]
    threads = [
        threading.Thread(target=visitor, args=(cache, range(0, 8), seen[0])),
        threading.Thread(target=visitor, args=(cache, range(7, -1, -1), seen[1])),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(cache), seen[0] == seen[1][::-1])


main()
