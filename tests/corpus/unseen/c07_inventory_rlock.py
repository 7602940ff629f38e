# EXPECT: clean
"""Inventory whose methods call each other under one re-entrant lock."""
import threading


class OutOfStock(Exception):
    pass


class Inventory:
    def __init__(self, stock):
        self._lock = threading.RLock()
        self._stock = dict(stock)
        self._moves = 0

    def available(self, sku):
        with self._lock:
            return self._stock.get(sku, 0)

    def add(self, sku, quantity):
        with self._lock:
            self._stock[sku] = self.available(sku) + quantity
            self._moves += 1

    def remove(self, sku, quantity):
        with self._lock:
            if self.available(sku) < quantity:
                raise OutOfStock(sku)
            self.add(sku, -quantity)

    def exchange(self, out, into, quantity):
        with self._lock:
            self.remove(out, quantity)
            self.add(into, quantity)

    def audit(self):
        with self._lock:
            return sum(self._stock.values()), self._moves


def clerk(inventory, out, into, times):
    for _ in range(times):
        try:
            inventory.exchange(out, into, 1)
        except OutOfStock:
            inventory.add(out, 1)
            inventory.remove(into, 1)


def main():
    inventory = Inventory({"bolt": 100, "nut": 100, "cap": 100})
    threads = [
        threading.Thread(target=clerk, args=(inventory, "bolt", "nut", 10)),
        threading.Thread(target=clerk, args=(inventory, "nut", "cap", 10)),
        threading.Thread(target=clerk, args=(inventory, "cap", "bolt", 10)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(inventory.audit())


main()
