# EXPECT: iteration during change | *carts* | 10, 14
"""sum() over a generator over a dict's values."""

import threading

carts = {"ann": [3, 4], "ben": [5]}


def shop(name, prices):
    carts[name] = prices


def turnover(out):
    out.append(sum(price for cart in carts.values() for price in cart))


sums = []
shopping = threading.Thread(target=shop, args=("cyd", [1, 2]))
closing = threading.Thread(target=turnover, args=(sums,))
shopping.start()
closing.start()
shopping.join()
closing.join()
print(sorted(carts), len(sums) <= 1)
