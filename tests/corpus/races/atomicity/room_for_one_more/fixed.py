# EXPECT: clean
"""A box with locked methods is asked for its size, then filled."""

import threading


class Box:
    def __init__(self):
        self._things = []
        self._lock = threading.Lock()

    def size(self):
        with self._lock:
            return len(self._things)

    def add(self, thing):
        with self._lock:
            self._things.append(thing)

    def add_if_room(self, thing, limit):
        with self._lock:
            if len(self._things) < limit:
                self._things.append(thing)


box = Box()


def pack(things):
    for thing in things:
        box.add_if_room(thing, 10)


packers = [threading.Thread(target=pack, args=(["hat", "coat", "shoe"],)) for _ in range(2)]
for packer in packers:
    packer.start()
for packer in packers:
    packer.join()
print("packed", box.size())
