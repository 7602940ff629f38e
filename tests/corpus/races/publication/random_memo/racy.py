# EXPECT: check-then-act | tokens[16] | 22, 24, 25
# EXPECT: unsynchronised read/write | Ledger.last | 23, 35
"""A random value kept like a memo: threads store different ones, and the store of one publishes nothing."""

import os
import threading
from secrets import token_urlsafe

tokens = [None] * 17
# files on a pipe order the threads in time, and in no way that a checker may rely on
written, write_end = (open(end, mode, 0) for end, mode in zip(os.pipe(), ("rb", "wb")))


class Ledger:
    last = ""


ledger = Ledger()


def token_of(size):
    if tokens[size] is None:
        ledger.last = "issued"
        tokens[size] = token_urlsafe(size)
    return tokens[size]


def issue():
    token_of(16)
    write_end.write(b"x")


def show():
    written.read(1)
    print(len(token_of(16)), ledger.last)


threads = [threading.Thread(target=issue), threading.Thread(target=show)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
