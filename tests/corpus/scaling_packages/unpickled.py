"""A shared numpy array that was unpickled (numpy#32298), the repair that its thread names, and an array a thread."""

import pickle
import threading

import numpy

STORED = pickle.dumps(numpy.ones(64))
ARRAY = pickle.loads(STORED)
CANONICAL = ARRAY.view("f8")
OWN = threading.local()


def total():
    return ARRAY[3:9].sum()


def repaired():
    return CANONICAL[3:9].sum()


def total_20():
    array = ARRAY
    for _ in range(20):
        array[3:9].sum()


def total_20_of_canonical():
    array = CANONICAL
    for _ in range(20):
        array[3:9].sum()


def total_20_of_own():
    """An array for each thread, with a data type of its own."""
    array = getattr(OWN, "array", None)
    if array is None:
        array = OWN.array = pickle.loads(STORED)
    for _ in range(20):
        array[3:9].sum()
