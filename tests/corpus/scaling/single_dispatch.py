"""Every thread calls one generic function, which looks its implementation up by class.

Repair: look the implementation up once (`area.dispatch(Square)`), and call that.
"""

import functools


class Square:
    def __init__(self, side):
        self.side = side


@functools.singledispatch
def area(shape):
    raise TypeError(shape)


@area.register
def _(shape: Square):
    return shape.side * shape.side


def f():
    total = 0
    square = Square(3)
    for _ in range(30):
        total += area(square)
    return total
