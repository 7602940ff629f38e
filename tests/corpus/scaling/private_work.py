"""Threads compute with what they made themselves."""


def f():
    total = 0
    values = list(range(50))
    for value in values:
        total += value * 3
    return total
