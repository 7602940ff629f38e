# EXPECT: iteration during change | recent | 12, 17
"""An OrderedDict whose items one thread goes through while another inserts: its views are none of dict's own."""

import threading
from collections import OrderedDict

recent = OrderedDict(home=1)
seen = []


def visit(page):
    recent[page] = 1


def report():
    try:
        for page, times in recent.items():
            seen.append((page, times))
    except RuntimeError:     # what it may come to
        pass


threads = [threading.Thread(target=visit, args=("about",)), threading.Thread(target=report)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(recent))
