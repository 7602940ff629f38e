# EXPECT: clean
"""An iterator class of our own hands out ids; its __next__ is not atomic."""

import threading
from itertools import count

ids = count(1)


def register(names, out):
    for name in names:
        out.append((next(ids), name))


registered = [[], []]
clerks = [threading.Thread(target=register, args=("abc", out)) for out in registered]
for clerk in clerks:
    clerk.start()
for clerk in clerks:
    clerk.join()
print("registered", len(registered[0]), len(registered[1]))
