"""Threads allocate and drop large blocks, which the allocator gets from the operating system and gives back.

Repair: keep a buffer in each thread.
"""


def f():
    for _ in range(3):
        bytearray(40_000_000)
