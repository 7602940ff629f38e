# EXPECT: clean
"""A byte on a socket or a pipe, and a child process that is waited for, order what came before."""

import os
import socket
import subprocess
import sys
import threading

counts = {"socket": 0, "pipe": 0, "child": 0}
here, there = socket.socketpair()
reading, writing = os.pipe()
child = None
begun = threading.Barrier(2)


def announce():
    global child
    counts["child"] += 1
    child = subprocess.Popen([sys.executable, "-S", "-c", "pass"])
    begun.wait()
    counts["socket"] += 1
    here.sendall(b".")
    counts["pipe"] += 1
    os.write(writing, b".")


def follow():
    begun.wait()
    there.recv(1)
    counts["socket"] += 1
    os.read(reading, 1)
    counts["pipe"] += 1
    child.wait()
    counts["child"] += 1


threads = [threading.Thread(target=target) for target in (announce, follow)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for end in (here, there):
    end.close()
print(counts)
