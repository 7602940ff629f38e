# EXPECT: check-then-act | *_stock['pen'] | 14, 18, 25, 26 | atomicity
"""An order is checked and booked in two calls, each of them locked."""

import threading


class Inventory:
    def __init__(self, **stock):
        self._stock = stock
        self._lock = threading.RLock()

    def available(self, article):
        with self._lock:
            return self._stock.get(article, 0)

    def remove(self, article, pieces):
        with self._lock:
            self._stock[article] -= pieces


inventory = Inventory(pen=10, ink=3)


def customer(article, pieces, bills):
    if inventory.available(article) >= pieces:
        inventory.remove(article, pieces)
        bills.append((article, pieces))


bills = []
customers = [threading.Thread(target=customer, args=("pen", 4, bills)) for _ in range(2)]
for each in customers:
    each.start()
for each in customers:
    each.join()
print(bills)
