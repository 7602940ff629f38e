# EXPECT: clean
"""A key is tested and then used in a dict that another thread replaces by a new one, and never changes."""

import threading


class Cache:
    def __init__(self):
        self.entries = {"a": 1, "b": 2}

    def reset(self):
        self.entries = {}

    def get(self, key):
        entries = self.entries
        return entries[key] if key in entries else None


cache = Cache()
threads = [threading.Thread(target=cache.reset), threading.Thread(target=cache.get, args=("a",))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(cache.entries)
