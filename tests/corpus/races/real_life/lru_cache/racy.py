# EXPECT: check-then-act or lost update or torn multi-step write | *_entries* | 15, 16, 17, 18, 20, 19
"""A small LRU cache over an OrderedDict."""

import threading
from collections import OrderedDict


class LruCache:
    def __init__(self, size):
        self.size = size
        self._entries = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key, make):
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key]
        self._entries[key] = value = make(key)
        if len(self._entries) > self.size:
            self._entries.popitem(last=False)
        return value


def render(page):
    return [page, page * 2]


cache = LruCache(2)
rendered = [[], []]


def serve(pages, out):
    for page in pages:
        try:
            out.append(cache.get(page, render)[1])
        except KeyError:
            out.append(page * 2)


servers = [threading.Thread(target=serve, args=([1, 2, 3, 1], out)) for out in rendered]
for server in servers:
    server.start()
for server in servers:
    server.join()
print(rendered)
