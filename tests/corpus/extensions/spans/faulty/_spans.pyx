# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

include "window.pxi"


cdef class Range:
    cdef Window window

    def __cinit__(self):
        self.window.low = 0
        self.window.high = 0

    def add(self, long value):
        widen(&self.window, value)

    def span(self):
        return self.window.high - self.window.low
