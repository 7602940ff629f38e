# EXPECT: clean
"""Two methods, two locks, one attribute."""

import threading


class Store:
    def __init__(self):
        self.stock = 10
        self.lock = threading.Lock()

    def sell(self, pieces):
        with self.lock:
            self.stock -= pieces

    def buy(self, pieces):
        with self.lock:
            self.stock += pieces


store = Store()
selling = threading.Thread(target=store.sell, args=(3,))
buying = threading.Thread(target=store.buy, args=(5,))
selling.start()
buying.start()
selling.join()
buying.join()
print("open", store.stock > 0)
