"""Counts the buffers in use; more than LIMIT are refused."""
import weakref

LIMIT = 1_000_000
in_use = 0


def _gone():
    global in_use
    in_use -= 1


class Buffer:
    __slots__ = ("data", "__weakref__")

    def __init__(self, size):
        global in_use
        if in_use >= LIMIT:
            raise MemoryError("too many buffers")
        self.data = bytes(size)
        in_use += 1
        weakref.finalize(self, _gone)
