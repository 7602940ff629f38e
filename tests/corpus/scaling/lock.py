"""Every thread takes one lock."""

import threading

LOCK = threading.Lock()


def f():
    total = 0
    for number in range(50):
        with LOCK:
            total += number
    return total
