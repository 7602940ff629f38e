# EXPECT: clean
"""Connection pool over LifoQueue: who holds a connection owns it."""
import queue
import threading
from contextlib import contextmanager


class Connection:
    def __init__(self, number):
        self.number = number
        self.statements = 0
        self.open_cursor = None

    def execute(self, text):
        self.open_cursor = text
        self.statements += 1
        result = "%s ok" % self.open_cursor
        self.open_cursor = None
        return result


class Pool:
    def __init__(self, size):
        self._free = queue.LifoQueue()
        self._all = tuple(Connection(n) for n in range(size))
        for connection in self._all:
            self._free.put(connection)

    @contextmanager
    def connection(self):
        connection = self._free.get(timeout=5)
        try:
            yield connection
        finally:
            self._free.put(connection)

    def statements(self):
        return sum(c.statements for c in self._all)


def report(pool, tables, rows):
    for table in tables:
        with pool.connection() as c:
            rows.append(c.execute("select " + table))
            c.execute("commit")


def main():
    pool = Pool(2)
    rows = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=report, args=(pool, ["t%d" % n, "u%d" % n], rows[n]))
        for n in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(pool.statements(), rows[0], rows[3])


main()
