"""A ufunc of numpy on an array of each thread's own (numpy#30993)."""

import threading

import numpy

OWN = threading.local()


def sine():
    try:
        array = OWN.array
    except AttributeError:
        array = OWN.array = numpy.ones(4)
    sin = numpy.sin
    for _ in range(20):
        sin(array)
