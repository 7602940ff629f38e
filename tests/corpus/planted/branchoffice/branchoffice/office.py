import threading


class Office:
    turnover = 0
    by_product = {}

    def __init__(self, name):
        self.name = name
        self._lock = threading.Lock()

    def sell(self, product, price):
        with self._lock:
            Office.turnover += price
            self.by_product[product] = self.by_product.get(product, 0) + 1
