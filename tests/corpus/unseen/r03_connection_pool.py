# EXPECT: check-then-act | *_idle* | 20, 21, 25
"""A connection pool which keeps idle connections in a list."""
import threading
from contextlib import contextmanager


class Connection:
    def __init__(self, number):
        self.number = number

    def query(self, text):
        return "%s;" % text


class Pool:
    def __init__(self, size):
        self._idle = [Connection(n) for n in range(size)]

    def take(self):
        if len(self._idle) > 0:
            return self._idle.pop()
        raise RuntimeError("pool exhausted")

    def give(self, connection):
        self._idle.append(connection)

    @contextmanager
    def connection(self):
        connection = self.take()
        try:
            yield connection
        finally:
            self.give(connection)


class Report:
    def __init__(self, pool, tables):
        self.pool = pool
        self.tables = tables
        self.rows = []

    def build(self):
        for table in self.tables:
            with self.pool.connection() as c:
                self.rows.append(c.query("select " + table))


def main():
    pool = Pool(8)
    reports = [Report(pool, ["a", "b", "c"]), Report(pool, ["d", "e", "f"])]
    threads = [threading.Thread(target=r.build) for r in reports]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in reports:
        print(r.rows)


if __name__ == "__main__":
    main()
