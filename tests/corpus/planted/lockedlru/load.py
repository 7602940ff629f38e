from lockedlru.cache import page


def work():
    return sum(page(n) for n in range(200))
