"""Every thread puts work into one deque and takes from it.

Repair: a deque for each thread.
"""

import collections

JOBS = collections.deque()


def f():
    for number in range(50):
        JOBS.append(number)
        JOBS.popleft()
