# EXPECT: clean
"""A weak registry of locks: a new one for a name is made once the old one is dead, after all who held it."""

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
        with registry.lock_of("a"):
            counts["a"] += 1
        with registry.lock_of(index):
            pass


threads = [threading.Thread(target=count, args=(f"thread {index}",)) for index in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts)
