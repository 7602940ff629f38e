# EXPECT: check-then-act | *Cache.entries | 13, 17, 18
"""A key is tested and then used, while another thread clears the whole dict."""

import threading


class Cache:
    def __init__(self):
        self.entries = {"a": 1, "b": 2}
        self.hits = 0

    def reset(self):
        self.entries.clear()

    def get(self, key):
        found = None
        if key in self.entries:
            found = self.entries[key]
        return found


cache = Cache()
threads = [threading.Thread(target=cache.reset), threading.Thread(target=cache.get, args=("a",))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(cache.entries)
