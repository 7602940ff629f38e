# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

cdef long visits = 0


def visit():
    global visits
    visits += 1
    return visits
