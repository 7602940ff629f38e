"""Every thread calls a decorated function of another module, which the decorator holds in a cell.

Repair: decorate in each thread, or call the function itself.
"""

from planted_helpers.rates import scale


def f():
    total = 0
    for amount in range(100):
        total += scale(amount)
    return total
