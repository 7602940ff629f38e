"""Every thread reads a shared object, and appends to a shared list."""


class Meter:
    def __init__(self):
        self.unit = 0.5


METER = Meter()
LOG = []


def f():
    total = 0.0
    for _ in range(50):
        meter = METER
        total += meter.unit
        LOG.append(1)
        LOG.pop()
    return total
