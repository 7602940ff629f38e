"""An LRU cache, safe for threads."""
import threading
from collections import OrderedDict


class Cache:
    def __init__(self, size):
        self._size = size
        self._data = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key, make):
        with self._lock:
            if key in self._data:
                self._data.move_to_end(key)
                return self._data[key]
        value = make(key)
        with self._lock:
            value = self._data.setdefault(key, value)
            if len(self._data) > self._size:
                self._data.popitem(last=False)
        return value


CACHE = Cache(50)


def render(key):
    return sum(i * key % 127 for i in range(2000))


def page(key):
    return CACHE.get(key % 200, render)
