# EXPECT: clean
"""The added amount comes from a call."""

import threading

PRICES = {"apple": 3, "pear": 4, "plum": 1}


class Basket:
    def __init__(self):
        self.total = 0
        self.lock = threading.Lock()

    def price(self, name):
        return PRICES[name]

    def add(self, name):
        amount = self.price(name)
        with self.lock:
            self.total += amount


basket = Basket()


def shop(names):
    for name in names:
        basket.add(name)


shoppers = [threading.Thread(target=shop, args=(list(PRICES) * 5,)) for _ in range(2)]
for shopper in shoppers:
    shopper.start()
for shopper in shoppers:
    shopper.join()
print(f"{len(shoppers)} shoppers are home")
