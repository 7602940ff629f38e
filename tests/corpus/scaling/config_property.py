"""Every thread reads a property of one object.

Repair: read it once before the loop, or an object for each thread.
"""


class Config:
    def __init__(self):
        self._limits = {"low": 3, "high": 5}

    @property
    def high(self):
        return self._limits["high"]


CONFIG = Config()


def f():
    total = 0
    for _ in range(100):
        total += CONFIG.high
    return total
