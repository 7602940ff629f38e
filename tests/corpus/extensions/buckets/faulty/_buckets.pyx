# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

cdef long buckets[16]


def put(long number):
    buckets[number & 15] += 1
