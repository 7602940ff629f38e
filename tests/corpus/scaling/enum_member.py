"""Every thread compares with a member of an enumeration."""

import enum


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def f():
    count = 0
    for _ in range(100):
        color = Color.RED
        if color is Color.RED:
            count += 1
    return count
