# EXPECT: clean
"""Servers taken in turn from the front of a deque."""

import threading
from collections import deque

servers = deque(["red", "green", "blue"])
turn = threading.Lock()


def next_server():
    with turn:
        server = servers[0]
        servers.rotate(-1)
        return server


used = [[], []]


def request(times, mine):
    mine.extend(next_server() for _ in range(times))


clients = [threading.Thread(target=request, args=(3, mine)) for mine in used]
for client in clients:
    client.start()
for client in clients:
    client.join()
print(len(used[0]) + len(used[1]), "requests")
