"""What a request has cost, in a context variable: each thread has its own."""
from contextvars import ContextVar

_costs = ContextVar("costs")
_costs.set({})                  # for the main thread


def costs():
    try:
        return _costs.get()
    except LookupError:         # a new thread
        mine = {}
        _costs.set(mine)
        return mine


def spend(what, amount):
    mine = costs()
    mine[what] = mine.get(what, 0) + amount


def bill():
    mine = costs()
    total = sum(mine.values())
    mine.clear()
    return total
