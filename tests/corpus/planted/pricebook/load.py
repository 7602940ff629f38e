import threading

from pricebook.book import bid, drop


def work():
    base = threading.get_ident() % 1009
    for n in range(4000):
        bid((n * 7919 + base) % 100_003, n)
    for n in range(0, 4000, 2):
        drop((n * 7919 + base) % 100_003)
