"""Every thread calls one closure, whose cell holds a shared object."""


def make():
    rates = {"eur": 1.25}

    def convert(amount):
        return amount * rates["eur"]

    return convert


convert = make()


def f():
    total = 0.0
    for amount in range(100):
        total += convert(amount)
    return total
