"""Every thread calls one partial of a bound method."""

import functools


class Service:
    def handle(self, scale, number):
        return scale * number


SERVICE = Service()
HANDLER = functools.partial(SERVICE.handle, 3)


def f():
    total = 0
    for number in range(100):
        total += HANDLER(number)
    return total
