"""Exact sums: the module asks for 60 digits, once, as its users want them."""
import decimal

decimal.getcontext().prec = 60


def series(n):
    total = decimal.Decimal(0)
    for i in range(1, n):
        total += decimal.Decimal(1) / i
    return total
