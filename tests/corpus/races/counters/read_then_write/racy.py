# EXPECT: lost update | Meter.reading | 13, 15
"""A meter whose reading is fetched, changed and put back in three statements."""

import threading


class Meter:
    def __init__(self):
        self.reading = 0
        self.guard = threading.Lock()

    def advance(self, amount):
        current = self.reading
        updated = current + amount
        self.reading = updated


meter = Meter()


def consume(amounts):
    for amount in amounts:
        meter.advance(amount)


first = threading.Thread(target=consume, args=([1, 2, 3],))
second = threading.Thread(target=consume, args=([10, 20, 30],))
first.start()
second.start()
first.join()
second.join()
print("meter read", meter.reading >= 6)
