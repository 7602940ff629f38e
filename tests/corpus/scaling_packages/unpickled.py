"""A shared numpy array that was unpickled (numpy#32298), and the repair that its thread names."""

import pickle

import numpy

ARRAY = pickle.loads(pickle.dumps(numpy.ones(64)))
CANONICAL = ARRAY.view("f8")


def total():
    return ARRAY[3:9].sum()


def repaired():
    return CANONICAL[3:9].sum()
