"""Every thread uses two shared objects that have nothing to do with each other."""


class Currency:
    def __init__(self, rate):
        self.rate = rate


RULES = [[2, 3], [4, 5]]
EURO = Currency(1.25)


def f():
    total = 0.0
    for _ in range(100):
        euro = EURO
        rule = RULES[1]
        total += euro.rate * rule[0]
    return total
