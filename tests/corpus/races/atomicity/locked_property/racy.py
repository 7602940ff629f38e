# EXPECT: lost update | Dimmer._level | 15, 20, 23 | atomicity
"""A property whose getter and setter lock, each for itself."""

import threading


class Dimmer:
    def __init__(self):
        self._level = 50
        self._lock = threading.RLock()

    @property
    def level(self):
        with self._lock:
            return self._level

    @level.setter
    def level(self, value):
        with self._lock:
            self._level = value

    def brighter(self, by):
        self.level += by


dimmer = Dimmer()


def turn(steps):
    for step in steps:
        dimmer.brighter(step)


hands = [threading.Thread(target=turn, args=(steps,)) for steps in ([1, 2], [-1, 3])]
for hand in hands:
    hand.start()
for hand in hands:
    hand.join()
print("turned", dimmer.level > 0)
