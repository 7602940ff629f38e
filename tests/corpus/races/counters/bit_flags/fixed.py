# EXPECT: clean
"""Permission bits switched on by different threads."""

import threading


class Permissions:
    READ, WRITE, ADMIN = 1, 2, 4

    def __init__(self):
        self.mask = 0
        self._lock = threading.Lock()

    def grant(self, bit):
        with self._lock:
            self.mask |= bit


permissions = Permissions()
grants = [Permissions.READ, Permissions.WRITE, Permissions.ADMIN]
threads = [threading.Thread(target=permissions.grant, args=(bit,)) for bit in grants]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("granted", permissions.mask != 0)
