"""Distances between stops, made on first use."""

_table = None


def _distance(a, b):
    return sum((a * i ^ b) % 17 for i in range(40))


def table():
    global _table
    if _table is None:
        _table = {}
        for a in range(60):
            for b in range(60):
                _table[a, b] = _distance(a, b)
    return _table


def cost(route):
    t = table()
    return sum(t.get(step, 0) for step in zip(route, route[1:]))
