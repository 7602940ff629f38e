# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

cdef long visits = 0
cdef cython.pymutex visits_lock


def visit():
    global visits
    with visits_lock:
        visits += 1
        return visits
