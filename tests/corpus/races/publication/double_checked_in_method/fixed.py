# EXPECT-NOTE: double-checked locking | Registry.client | 15, 16, 22, 23
# EXPECT-NOTE: double-checked locking | Registry.items* | 26, 27, 32, 34
"""Double-checked locking over two methods; in the racy twin the second one does not test again."""

import threading


class Registry:
    def __init__(self):
        self.client = None
        self.items = {}
        self.lock = threading.Lock()

    def connected(self):
        if self.client is None:
            self.connect()
        return self.client

    def connect(self):
        with self.lock:
            # Another thread may have been here.
            if self.client is None:
                self.client = object()

    def get(self, key):
        if key not in self.items:
            self.make(key)
        return self.items[key]

    def make(self, key):
        with self.lock:
            if key not in self.items:
                # The item is complete when it is stored.
                self.items[key] = [key]


registry = Registry()
found = [None, None]


def use(index):
    found[index] = registry.connected(), registry.get("a")


users = [threading.Thread(target=use, args=(index,)) for index in range(2)]
for user in users:
    user.start()
for user in users:
    user.join()
print(len(found))
