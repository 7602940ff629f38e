# EXPECT: clean
"""Double buffering: two attributes swapped in one statement."""

import threading


class Buffers:
    def __init__(self):
        self.front = ["old"]
        self.back = ["new"]
        self.swapping = threading.Lock()

    def swap(self):
        with self.swapping:
            self.front, self.back = self.back, self.front


buffers = Buffers()


def draw(frames):
    for _ in range(frames):
        buffers.swap()


painters = [threading.Thread(target=draw, args=(3,)) for _ in range(2)]
for painter in painters:
    painter.start()
for painter in painters:
    painter.join()
print("painted")
