
cdef struct Window:
    long low
    long high


cdef void widen(Window *window, long value) noexcept:
    if value < window.low:
        window.low = value
    if value > window.high:
        window.high = value
