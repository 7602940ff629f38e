# EXPECT: lost update | *_items* | 14, 18, 26 | atomicity
"""A thread-safe key-value store, used in a way that is not."""

import threading


class Store:
    def __init__(self, **items):
        self._items = dict(items)
        self._lock = threading.Lock()

    def get(self, key):
        with self._lock:
            return self._items[key]

    def put(self, key, value):
        with self._lock:
            self._items[key] = value


store = Store(apples=0)


def pick(times):
    for _ in range(times):
        store.put("apples", store.get("apples") + 1)


pickers = [threading.Thread(target=pick, args=(4,)) for _ in range(2)]
for picker in pickers:
    picker.start()
for picker in pickers:
    picker.join()
print("picked", store.get("apples") > 0)
