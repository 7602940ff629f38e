# EXPECT: lost update | *level* | 16, 19, 31
import threading


class Clamped:
    def __init__(self, low, high):
        self.low = low
        self.high = high

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__[self.slot]

    def __set__(self, instance, value):
        instance.__dict__[self.slot] = max(self.low, min(self.high, value))


class Lamp:
    level = Clamped(0, 100)

    def __init__(self):
        self.level = 50


def turn(lamp, step):
    for _ in range(5):
        lamp.level += step


lamp = Lamp()
threads = [threading.Thread(target=turn, args=(lamp, s)) for s in (2, -3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(0 <= lamp.level <= 100)
