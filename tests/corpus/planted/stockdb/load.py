from stockdb.stock import take


def price(n):
    return sum(i * n % 7 for i in range(300))


def work():
    for n in range(600):
        price(n)
        take(f"item{n % 5}", 1)
