"""Every thread asks for the frames of all threads, for which the interpreter stops all of them.

Repair: ask seldom, and in one thread.
"""

import sys


def f():
    total = 0
    for number in range(200):
        total += number
    return total + len(sys._current_frames())
