"""Every thread reads a list that is an attribute of a class."""


class Config:
    limits = [10, 20, 30]  # noqa: RUF012 - shared on purpose


def f():
    total = 0
    for _ in range(100):
        limits = Config.limits
        total += limits[1]
    return total
