# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython

include "window.pxi"


cdef class Range:
    cdef Window window

    def __cinit__(self):
        self.window.low = 0
        self.window.high = 0

    @cython.critical_section
    def add(self, long value):
        widen(&self.window, value)

    @cython.critical_section
    def span(self):
        return self.window.high - self.window.low
