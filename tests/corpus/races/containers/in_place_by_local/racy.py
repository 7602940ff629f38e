# EXPECT: iteration during change | *points | 14, 19
"""`+=` of a local changes the list that an attribute holds, while another thread goes through it."""

import threading


class Trail:
    def __init__(self):
        self.points = []
        self.lock = threading.Lock()

    def extend(self, *new):
        points = self.points
        points += new


def measure(trail, lengths):
    for _ in range(20):
        lengths.append(sum(1 for point in trail.points) >= 0)


trail = Trail()
lengths = []
walker = threading.Thread(target=lambda: [trail.extend(step, step) for step in range(20)])
meter = threading.Thread(target=measure, args=(trail, lengths))
for thread in (walker, meter):
    thread.start()
for thread in (walker, meter):
    thread.join()
print(len(trail.points), all(lengths))
