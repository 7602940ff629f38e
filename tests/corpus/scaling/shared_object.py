"""Every thread calls a method of one object and reads its attribute."""


class Provider:
    def __init__(self):
        self.factor = 7.5

    def price(self, amount):
        return self.factor * amount


PROVIDER = Provider()


def f():
    total = 0.0
    for amount in range(100):
        total += PROVIDER.price(amount)
    return total
