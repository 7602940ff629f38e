# EXPECT: lost update | Store.stock | 15, 19
"""Two methods, two locks, one attribute."""

import threading


class Store:
    def __init__(self):
        self.stock = 10
        self.selling = threading.Lock()
        self.buying = threading.Lock()

    def sell(self, pieces):
        with self.selling:
            self.stock -= pieces

    def buy(self, pieces):
        with self.buying:
            self.stock += pieces


store = Store()
selling = threading.Thread(target=store.sell, args=(3,))
buying = threading.Thread(target=store.buy, args=(5,))
selling.start()
buying.start()
selling.join()
buying.join()
print("open", store.stock > 0)
