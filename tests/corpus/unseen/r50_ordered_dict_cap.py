# EXPECT: check-then-act | *pages* | 11, 12, 13
import threading
from collections import OrderedDict

CAP = 6
pages = OrderedDict((n, "old") for n in range(CAP))


def store(first):
    for n in range(first, first + 3):
        if len(pages) >= CAP:
            pages.popitem(last=False)
        pages[n] = "new"


threads = [threading.Thread(target=store, args=(base,)) for base in (100, 200)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("new" in pages.values())
