# EXPECT: clean
"""LRU cache; every public method is one critical section."""
import threading
from collections import OrderedDict


class LRU:
    def __init__(self, capacity):
        self._lock = threading.Lock()
        self._capacity = capacity
        self._data = OrderedDict()
        self._hits = 0
        self._misses = 0

    def get_or_compute(self, key, function):
        with self._lock:
            if key in self._data:
                self._hits += 1
                self._data.move_to_end(key)
                return self._data[key]
            self._misses += 1
        value = function(key)
        with self._lock:
            kept = self._data.setdefault(key, value)
            while len(self._data) > self._capacity:
                self._data.popitem(last=False)
        return kept

    @property
    def lookups(self):
        with self._lock:
            return self._hits + self._misses

    def __len__(self):
        with self._lock:
            return len(self._data)


def cube(n):
    return n ** 3


def visitor(cache, keys, out):
    for key in keys:
        out.append(cache.get_or_compute(key, cube))


def main():
    cache = LRU(4)
    outs = [[], [], []]
    orders = [range(6), range(5, -1, -1), [0, 2, 4, 1, 3, 5]]
    threads = [
        threading.Thread(target=visitor, args=(cache, order, out))
        for order, out in zip(orders, outs)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(cache), cache.lookups)
    print(outs)


main()
