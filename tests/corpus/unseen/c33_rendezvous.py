# EXPECT: clean
import threading


class Exchanger:
    def __init__(self):
        self.offers = [None, None]
        self.here = [threading.Semaphore(0), threading.Semaphore(0)]

    def swap(self, side, thing):
        self.offers[side] = thing
        self.here[side].release()
        self.here[1 - side].acquire()
        return self.offers[1 - side]


def trader(exchanger, side, thing, bags):
    received = exchanger.swap(side, [thing])
    received.append("from %d" % (1 - side))
    bags[side] = received


exchanger = Exchanger()
bags = {}
threads = [
    threading.Thread(target=trader, args=(exchanger, side, thing, bags))
    for side, thing in enumerate(["salt", "silk"])
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(bags[0], bags[1])
