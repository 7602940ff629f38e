import threading
from contextlib import contextmanager


@contextmanager
def guarded(lock=None):
    lock = lock or threading.Lock()
    with lock:
        yield lock
