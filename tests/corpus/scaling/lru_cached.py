"""Every thread hits the cache of one function."""

import functools


@functools.lru_cache(maxsize=128)
def rate(name):
    return len(name)


def f():
    total = 0
    for _ in range(50):
        total += rate("euro")
    return total
