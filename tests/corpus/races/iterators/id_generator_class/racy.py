# EXPECT: lost update | Ids.last | 15, 16
"""An iterator class of our own hands out ids; its __next__ is not atomic."""

import threading


class Ids:
    def __init__(self):
        self.last = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.last += 1
        return self.last


ids = Ids()


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
