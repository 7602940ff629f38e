"""Each thread moves a block of memory of its own, which no cache holds: if anything is in the way, it is the memory.

Repair: none in Python.
"""


def payloads():
    return [memoryview(bytearray(48_000_000)) for _ in range(2)]


def f(block):
    half = len(block) // 2
    block[:half] = block[half:]
