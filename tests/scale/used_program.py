"""A program whose lines use objects; test_places.py knows which.  Its line numbers count: add at the end."""

from tests.scale import used_values


class Provider:
    limits = [1000, 2000]  # noqa: RUF012 - shared on purpose

    def __init__(self):
        self.factor = 7.5

    def price(self, amount):
        return self.factor * amount

    @property
    def never(self):
        raise RuntimeError("a property was called only to look at it")


class Slotted:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = object()


PROVIDER = Provider()
SLOTTED = Slotted()
TABLE = {number: object() for number in range(10)}
UNUSED = object()


def make():
    inner = object()

    def convert():
        return inner

    return convert


CONVERT = make()


def rarely(flag):
    if flag:
        return UNUSED
    return None


def f(conf):
    total = sum(
        PROVIDER.price(amount)
        for amount in range(3))
    for number in range(5):
        row = TABLE[number]
    total += 1000003
    CONVERT()
    rarely(flag=False)
    if total < 0:
        PROVIDER.never  # noqa: B018 - looked at, never run
    return total, row, conf["rates"], PROVIDER.limits, used_values.SHARED, SLOTTED.rate


def g(): return any(TABLE[3] is None for _ in range(2))


RATE = lambda: SLOTTED.rate


def with_default(table=TABLE):
    return RATE()
