# EXPECT: clean
"""An OrderedDict whose items one thread goes through while another inserts: its views are none of dict's own."""

import threading
from collections import OrderedDict

recent = OrderedDict(home=1)
seen = []
lock = threading.Lock()


def visit(page):
    with lock:
        recent[page] = 1


def report():
    with lock:
        for page, times in recent.items():
            seen.append((page, times))


threads = [threading.Thread(target=visit, args=("about",)), threading.Thread(target=report)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(recent))
