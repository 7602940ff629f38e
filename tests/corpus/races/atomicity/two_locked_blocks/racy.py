# EXPECT: check-then-act | Hotel.free | 14, 17, 15 | atomicity
"""Looked under the lock, booked under the lock, but not in one go."""

import threading


class Hotel:
    def __init__(self, rooms):
        self.free = rooms
        self.lock = threading.Lock()

    def book(self):
        with self.lock:
            vacant = self.free > 0
        if vacant:
            with self.lock:
                self.free -= 1
        return vacant


hotel = Hotel(10)
booked = [None, None]


def guest(index):
    booked[index] = hotel.book()


guests = [threading.Thread(target=guest, args=(index,)) for index in range(2)]
for each in guests:
    each.start()
for each in guests:
    each.join()
print(booked)
