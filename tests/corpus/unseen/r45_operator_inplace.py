# EXPECT: lost update | Sum.total | 13
import operator
import threading


class Sum:
    def __init__(self):
        self.total = 0.0


def feed(target, values):
    for value in values:
        target.total = operator.iadd(target.total, value)


target = Sum()
parts = [[0.5, 1.5, 2.5], [10.0, 20.0]]
threads = [threading.Thread(target=feed, args=(target, p)) for p in parts]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(target.total > 0)
