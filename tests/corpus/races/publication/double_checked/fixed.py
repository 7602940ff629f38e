# EXPECT-NOTE: double-checked locking | Pool._connection | 13, 16, 17
"""Double-checked locking; the racy twin forgets the second check."""

import threading


class Pool:
    def __init__(self):
        self._connection = None
        self._lock = threading.Lock()

    def connection(self):
        if self._connection is None:
            with self._lock:
                if self._connection is None:
                    self._connection = ["open"]
        return self._connection


pool = Pool()
states = [None, None]


def use(index):
    states[index] = pool.connection()[0]


users = [threading.Thread(target=use, args=(index,)) for index in range(2)]
for user in users:
    user.start()
for user in users:
    user.join()
print(states)
