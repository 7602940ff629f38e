# EXPECT: check-then-act | *pool['db1'] | 16, 17, 18
"""One connection per host, made on first use."""

import threading


class Connection:
    def __init__(self, host):
        self.host = host


pool = {}


def connection(host):
    if host not in pool:
        pool[host] = Connection(host)
    return pool[host]


hosts = [None, None]


def query(index):
    hosts[index] = connection("db1").host


threads = [threading.Thread(target=query, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(hosts)
