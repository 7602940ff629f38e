# EXPECT: clean
"""A pair of locked methods: asked first, paid then."""

import threading


class Wallet:
    def __init__(self, money):
        self.money = money
        self.lock = threading.RLock()

    def can_pay(self, price):
        with self.lock:
            return self.money >= price

    def pay(self, price):
        with self.lock:
            self.money -= price


wallet = Wallet(100)


def buy(prices):
    for price in prices:
        with wallet.lock:
            if wallet.can_pay(price):
                wallet.pay(price)


shops = [threading.Thread(target=buy, args=([5, 10],)) for _ in range(2)]
for shop in shops:
    shop.start()
for shop in shops:
    shop.join()
print("left", wallet.money >= 0)
