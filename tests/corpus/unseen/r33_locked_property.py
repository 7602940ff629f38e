# EXPECT: lost update | *balance* | 13, 18, 23 | atomicity
import threading


class Purse:
    def __init__(self, balance):
        self._lock = threading.Lock()
        self._balance = balance

    @property
    def balance(self):
        with self._lock:
            return self._balance

    @balance.setter
    def balance(self, value):
        with self._lock:
            self._balance = value


def spend(purse, prices):
    for price in prices:
        purse.balance -= price


purse = Purse(1000)
threads = [
    threading.Thread(target=spend, args=(purse, [1, 2, 3])),
    threading.Thread(target=spend, args=(purse, [10, 20, 30])),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(purse.balance > 0)
