"""Typed fields, as an ORM has them."""


class Field:
    def __set_name__(self, owner, name):
        self.slot = "_f_" + name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return obj.__dict__.get(self.slot, 0)

    def __set__(self, obj, value):
        if not isinstance(value, (int, float)):
            raise TypeError(self.slot)
        obj.__dict__[self.slot] = value


class Meter:
    hits = Field()
    volume = Field()


MAIN = Meter()


def record(amount):
    MAIN.hits += 1
    MAIN.volume += amount
