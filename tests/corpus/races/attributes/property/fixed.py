# EXPECT: clean
"""A property whose setter stores what the caller computed from the getter."""

import threading


class Thermostat:
    def __init__(self):
        self._celsius = 20.0
        self._lock = threading.Lock()

    @property
    def celsius(self):
        return self._celsius

    @celsius.setter
    def celsius(self, value):
        self._celsius = value

    def warmer(self, by):
        with self._lock:
            self.celsius += by


thermostat = Thermostat()


def turn(by, times):
    for _ in range(times):
        thermostat.warmer(by)


dials = [threading.Thread(target=turn, args=(by, 8)) for by in (0.5, -0.25)]
for dial in dials:
    dial.start()
for dial in dials:
    dial.join()
print("turned")
