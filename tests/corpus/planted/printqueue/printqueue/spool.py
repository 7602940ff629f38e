"""Numbers the pages. A stuck printer must not stop the rest, so the lock has a time limit."""
import threading

_lock = threading.Lock()
pages = 0
log = []


def render(n):
    return sum(i * i % 7 for i in range(n))


def spool(n):
    global pages
    got = _lock.acquire(timeout=0.002)
    try:
        first = pages + 1
        render(n)
        pages = first
        return first
    finally:
        if got:
            _lock.release()
