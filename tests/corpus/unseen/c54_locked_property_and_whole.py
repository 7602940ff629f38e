# EXPECT: clean
import threading


class Tank:
    __slots__ = ("_lock", "_litres", "_peak")

    def __init__(self, litres):
        self._lock = threading.RLock()
        self._litres = litres
        self._peak = litres

    @property
    def litres(self):
        with self._lock:
            return self._litres

    @litres.setter
    def litres(self, value):
        with self._lock:
            self._litres = value
            self._peak = max(self._peak, value)

    def pour(self, amount):
        with self._lock:
            self.litres += amount

    @property
    def peak(self):
        with self._lock:
            return self._peak


def fill(tank, amounts):
    for amount in amounts:
        tank.pour(amount)
        tank.litres


tank = Tank(1)
threads = [threading.Thread(target=fill, args=(tank, a)) for a in ([1, 2], [30, 40])]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(tank.litres, tank.peak)
