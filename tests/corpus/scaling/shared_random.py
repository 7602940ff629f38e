"""Every thread draws from the random numbers of the module `random`."""

import random


def f():
    total = 0.0
    for _ in range(50):
        total += random.random()
    return total
