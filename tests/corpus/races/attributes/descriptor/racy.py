# EXPECT: lost update or unsynchronised read/write | Machine._count_starts | 14, 17
"""A descriptor of our own that keeps its value in the instance."""

import threading


class Counted:
    def __set_name__(self, owner, name):
        self.slot = f"_count_{name}"

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.slot, 0)

    def __set__(self, instance, value):
        setattr(instance, self.slot, value)


class Machine:
    starts = Counted()

    def __init__(self):
        self.starts = 0

    def start(self):
        self.starts += 1


machine = Machine()


def operate():
    for _ in range(5):
        machine.start()


operators = [threading.Thread(target=operate) for _ in range(2)]
for operator in operators:
    operator.start()
for operator in operators:
    operator.join()
print("machine started")
