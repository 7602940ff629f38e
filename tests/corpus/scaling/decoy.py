"""A shared object is read once in a call, which is not what takes the time."""

CONFIG = {"scale": (3, 4)}


def f():
    scale = CONFIG["scale"]
    total = 0
    first = 3
    for number in range(400):
        total += number * first
    return total, len(scale)
