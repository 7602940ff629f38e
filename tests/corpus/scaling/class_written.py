"""Every thread writes an attribute of one class."""


class Stats:
    count = 0


def f():
    for number in range(20):
        Stats.count = number
