"""Connections taken from a pool and given back by four threads, without a server."""

from in_threads import in_threads
from redis import ConnectionPool
from redis.connection import Connection


class Unconnected(Connection):
    """A connection to nothing."""

    def connect(self):
        pass

    def can_read(self, timeout=0):
        return False


pool = ConnectionPool(connection_class=Unconnected)


def work(thread, turn):
    connection = pool.get_connection()
    pool.release(connection)
    if turn % 50 == thread:
        pool.disconnect()


in_threads(work)
