# EXPECT: lost update | *counts['a'] | 28
"""A weak registry of locks, in which each thread asks for a name of its own."""

import threading
import weakref


class LockRegistry:
    def __init__(self):
        self.locks = weakref.WeakValueDictionary()
        self.mutex = threading.Lock()

    def lock_of(self, name):
        with self.mutex:
            lock = self.locks.get(name)
            if lock is None:
                lock = self.locks[name] = threading.Lock()
            return lock


registry = LockRegistry()
counts = {"a": 0}


def count(index):
    for _ in range(20):
        with registry.lock_of(index):
            counts["a"] += 1


threads = [threading.Thread(target=count, args=(f"thread {index}",)) for index in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts["a"] > 0)
