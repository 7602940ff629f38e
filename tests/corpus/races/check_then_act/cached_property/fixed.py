# EXPECT: clean
"""A cached property whose value may be made twice, and one that a lock protects."""

import functools
import threading


class Source:
    lock = threading.Lock()

    @functools.cached_property
    def handle(self):
        return threading.Event()

    @functools.cached_property
    def names(self):
        both.wait()
        return {"a": 1}

    @functools.cached_property
    def size(self):
        return len("source")


def use():
    with source.lock:
        handle = source.handle
    handle.set()
    return source.size, source.names


both = threading.Barrier(2)
source = Source()
threads = [threading.Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(source.size)
