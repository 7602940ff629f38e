# EXPECT: check-then-act | Shape.tag | 13, 14, 15
"""Who comes first puts its own tag on the shape."""

import threading


class Shape:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.tag = None

    def describe(self, who):
        if self.tag is None:
            self.tag = f"seen by {who}"
        return len(self.tag)


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
