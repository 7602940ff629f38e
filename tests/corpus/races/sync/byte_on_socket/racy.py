# EXPECT: lost update | Till.sold | 18, 23
"""A byte on a socket is sent before the change that it is to announce."""

import socket
import threading


class Till:
    sold = 0


here, there = socket.socketpair()


def announce():
    here.sendall(b".")
    # too late
    Till.sold += 1


def follow():
    there.recv(1)
    Till.sold += 1


threads = [threading.Thread(target=target) for target in (announce, follow)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
here.close()
there.close()
print(Till.sold > 0)
