"""Every thread unpickles a reference to one object, as those to the data types of numpy are.

Repair: unpickle once in each thread, and keep it.
"""

import pickle


class Unit:
    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return unit_of, (self.name,)


UNITS = {name: Unit(name) for name in ("metre", "second")}


def unit_of(name):
    return UNITS[name]


PICKLED = pickle.dumps([*UNITS.values()])


def f():
    total = 0
    for _ in range(5):
        total += len(pickle.loads(PICKLED))
    return total
