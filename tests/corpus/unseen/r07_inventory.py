# EXPECT: check-then-act or lost update | *stock* | 17, 22 | atomicity
"""Warehouse inventory with reservations."""
import threading


class OutOfStock(Exception):
    pass


class Inventory:
    def __init__(self, stock):
        self.lock = threading.Lock()
        self.stock = dict(stock)

    def reserve(self, sku, quantity):
        with self.lock:
            available = self.stock[sku]
        if available < quantity:
            raise OutOfStock(sku)
        remaining = available - quantity
        with self.lock:
            self.stock[sku] = remaining

    def snapshot(self):
        with self.lock:
            return dict(self.stock)


class Order:
    def __init__(self, number, lines):
        self.number = number
        self.lines = lines


class Clerk(threading.Thread):
    def __init__(self, inventory, orders):
        super().__init__()
        self.inventory = inventory
        self.orders = orders
        self.accepted = []

    def run(self):
        for order in self.orders:
            for sku, quantity in order.lines:
                self.inventory.reserve(sku, quantity)
            self.accepted.append(order.number)


def main():
    inventory = Inventory({"bolt": 500, "nut": 500})
    clerks = [
        Clerk(inventory, [Order(n, [("bolt", 2), ("nut", 1)]) for n in range(5)]),
        Clerk(inventory, [Order(n, [("bolt", 1), ("nut", 3)]) for n in range(5, 9)]),
    ]
    for c in clerks:
        c.start()
    for c in clerks:
        c.join()
    print([c.accepted for c in clerks], sorted(inventory.snapshot()))


main()
