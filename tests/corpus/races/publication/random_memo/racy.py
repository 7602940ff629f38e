# EXPECT: check-then-act | tokens[16] | 21, 23, 24
# EXPECT: unsynchronised read/write | Ledger.last | 22, 34
"""A random value kept like a memo: threads store different ones, and the store of one publishes nothing."""

import os
import threading
from secrets import token_urlsafe

tokens = [None] * 17
written, write_end = os.pipe()    # orders the threads in time, and in no way that a checker may rely on


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
    os.write(write_end, b"x")


def show():
    os.read(written, 1)
    print(len(token_of(16)), ledger.last)


threads = [threading.Thread(target=issue), threading.Thread(target=show)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
