"""Every thread puts into one queue and takes from it."""

import queue

QUEUE = queue.SimpleQueue()


def f():
    for number in range(20):
        QUEUE.put(number)
        QUEUE.get()
