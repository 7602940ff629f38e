# EXPECT: check-then-act | ConnectionPool.created | 25, 27
# EXPECT: lost update | ConnectionPool.created | 27, 27
"""A pool that opens connections up to a limit."""

import threading
from collections import deque


class Connection:
    def query(self, text):
        return text.upper()


class ConnectionPool:
    def __init__(self, limit):
        self.limit = limit
        self.created = 0
        self.idle = deque()
        self.lock = threading.Lock()

    def acquire(self):
        try:
            return self.idle.pop()
        except IndexError:
            if self.created >= self.limit:
                raise RuntimeError("pool exhausted") from None
            self.created += 1
            return Connection()


pool = ConnectionPool(8)
answers = [[], []]


def work(out):
    held = [pool.acquire() for _ in range(2)]
    out.extend(connection.query("select") for connection in held)


workers = [threading.Thread(target=work, args=(out,)) for out in answers]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(answers)
