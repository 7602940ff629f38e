# EXPECT: check-then-act | Source.handle | 10, 14
"""A cached property has no lock: two threads may open two handles."""

import functools
import threading


class Source:
    opened = 0
    @functools.cached_property
    def handle(self):
        both.wait()
        # identity matters
        return threading.Event()

    @functools.cached_property
    def size(self):
        return len("source")


both = threading.Barrier(2)
source = Source()
threads = [threading.Thread(target=lambda: (source.handle, source.size)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(source.size)
