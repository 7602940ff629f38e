"""Every thread asks whether objects are instances of one abstract class, which keeps the answers in a shared cache.

Repair: ask once for each class, or for the class itself.
"""

import abc


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Named:
    """No subclass, so that the cache decides."""


Shape.register(Named)


def f():
    count = 0
    named = Named()
    for _ in range(30):
        count += isinstance(named, Shape)
    return count
