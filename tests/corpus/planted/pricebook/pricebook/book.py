"""An order book: prices in order, quantity at each."""
from sortedcontainers import SortedDict

BIDS = SortedDict()


def bid(price, quantity):
    BIDS.setdefault(price, quantity)


def drop(price):
    BIDS.pop(price, None)


def best():
    return BIDS.peekitem(-1) if BIDS else None
