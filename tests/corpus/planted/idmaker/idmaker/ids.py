"""Numbers for invoices; no number may be given twice. next() of count is atomic."""
import itertools

_numbers = itertools.count(1)


def invoice(lines):
    total = 0
    for n in range(lines):
        total += (n * 37) % 101
    return next(_numbers), total
