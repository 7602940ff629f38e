"""Every thread gets one object through a weak reference.

Repair: get the object once in each call, or an object for each thread.
"""

import weakref


class Owner:
    def __init__(self):
        self.rate = 1.5


OWNER = Owner()
REFERENCE = weakref.ref(OWNER)


def f():
    total = 0.0
    for _ in range(50):
        owner = REFERENCE()
        total += owner.rate
    return total
