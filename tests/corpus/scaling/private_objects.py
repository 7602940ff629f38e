"""Threads make objects and drop them."""


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def f():
    total = 0
    for number in range(40):
        point = Point(number, 2)
        total += point.x * point.y
    return total
