# EXPECT-NOTE: idempotent memo | Shape.* | 13, 14, 15
"""The area is computed when it is first asked for, perhaps twice."""

import threading


class Shape:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.cached_area = None

    def describe(self, who):
        if self.cached_area is None:
            self.cached_area = self.width * self.height
        return self.cached_area


shape = Shape(3, 4)
seen = [0, 0]


def look(index, who):
    seen[index] = shape.describe(who)


lookers = [threading.Thread(target=look, args=(index, who)) for index, who in enumerate(("ann", "ben"))]
for looker in lookers:
    looker.start()
for looker in lookers:
    looker.join()
print(seen)
