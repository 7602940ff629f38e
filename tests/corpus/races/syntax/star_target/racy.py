# EXPECT: torn multi-step write or lost update | Line.waiting | 13, 13
"""`first, *rest = rest` on a shared attribute."""

import threading


class Line:
    def __init__(self, people):
        self.waiting = people
        self.served = []

    def serve(self):
        person, *self.waiting = self.waiting
        self.served.append(person)


line = Line([f"person {number}" for number in range(10)])


def clerk(customers):
    for _ in range(customers):
        line.serve()


clerks = [threading.Thread(target=clerk, args=(3,)) for _ in range(2)]
for each in clerks:
    each.start()
for each in clerks:
    each.join()
print(len(line.served), "served")
