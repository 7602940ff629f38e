# EXPECT: lost update | Odometer.kilometres | 14, 16
"""The lock is released between the read and the write."""

import threading


class Odometer:
    def __init__(self):
        self.kilometres = 0
        self.lock = threading.Lock()

    def drive(self, distance):
        self.lock.acquire()
        driven = self.kilometres
        self.lock.release()
        self.kilometres = driven + distance


odometer = Odometer()
drivers = [threading.Thread(target=odometer.drive, args=(distance,)) for distance in (3, 4)]
for driver in drivers:
    driver.start()
for driver in drivers:
    driver.join()
print("driven", odometer.kilometres > 0)
