from objpool.pool import once


def work():
    return sum(once(n) for n in range(100))
