# EXPECT: clean
import functools
import threading


@functools.lru_cache(maxsize=None)
def ways(stairs):
    if stairs < 2:
        return 1
    return ways(stairs - 1) + ways(stairs - 2)


class Shape:
    def __init__(self, side):
        self.side = side

    @functools.lru_cache(maxsize=32)
    def area(self):
        return self.side * self.side


square = Shape(7)
results = {}


def work(name, numbers):
    results[name] = [ways(n) for n in numbers] + [square.area()]


threads = [
    threading.Thread(target=work, args=("up", range(0, 20, 4))),
    threading.Thread(target=work, args=("down", range(16, -1, -4))),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(results["up"], results["down"])
