"""Sums of the sensors, kept as doubles for the driver."""
from array import array

SENSORS = 16
_store = array("d", bytes(8 * SENSORS))
sums = memoryview(_store)


def add(sensor, value):
    sums[sensor] += value


def total():
    return sum(_store)
