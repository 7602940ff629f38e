# EXPECT: clean
"""A semaphore that should say "done" starts with a permit."""

import threading


class Oven:
    def __init__(self):
        self.cake = None
        self.done = threading.Semaphore(0)

    def bake(self):
        self.cake = "sponge"
        self.done.release()

    def take(self):
        self.done.acquire()
        return self.cake


oven = Oven()
taken = []
guest = threading.Thread(target=lambda: taken.append(oven.take()))
baker = threading.Thread(target=oven.bake)
guest.start()
baker.start()
guest.join()
baker.join()
print(oven.cake, len(taken))
