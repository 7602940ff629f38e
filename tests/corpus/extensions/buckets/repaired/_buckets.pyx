# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

cdef long buckets[16]
cdef cython.pymutex buckets_lock


def put(long number):
    with buckets_lock:
        buckets[number & 15] += 1
