# EXPECT: unsynchronised read/write | Reply.body | 19, 25
"""A reply is filed in a dict, then filled in."""

import threading
import time


class Reply:
    def __init__(self):
        self.body = ""


replies = {}


def answer(key):
    reply = Reply()
    replies[key] = reply
    reply.body = "ok"


def wait_for(key, out):
    while key not in replies:
        time.sleep(0.001)
    out.append(replies[key].body in {"", "ok"})


got = []
asking = threading.Thread(target=wait_for, args=("q1", got))
answering = threading.Thread(target=answer, args=("q1",))
asking.start()
answering.start()
asking.join()
answering.join()
print(got)
