"""Rebuilds the index; only one thread may, the others go on with the old one."""
import threading

_busy = threading.Lock()
index = {}


def rebuild(size=40_000):
    if not _busy.acquire(blocking=False):
        return len(index)
    try:
        new = {}
        for n in range(size):
            new[n] = n * 31 % 1009
        index.update(new)
        return size
    finally:
        _busy.release()
