"""Every thread takes one reentrant lock."""

import threading

GUARD = threading.RLock()


def f():
    total = 0
    for number in range(50):
        with GUARD:
            total += number
    return total
