# EXPECT: clean
"""An attribute that lives in a slot."""

import threading


class Point:
    __slots__ = ("x", "y")

    def __init__(self):
        self.x = 0
        self.y = 0


origin = Point()
moving = threading.Lock()


def move_right(steps):
    for _ in range(steps):
        with moving:
            origin.x += 1


def move_up(steps):
    for _ in range(steps):
        origin.y += 1


movers = [
    threading.Thread(target=move_right, args=(10,)),
    threading.Thread(target=move_right, args=(20,)),
    threading.Thread(target=move_up, args=(30,)),
]
for mover in movers:
    mover.start()
for mover in movers:
    mover.join()
print("up:", origin.y)
