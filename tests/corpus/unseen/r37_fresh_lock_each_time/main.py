# EXPECT: lost update | *visits* | 10
import threading

import site_state
from guard import guarded


def visit(times):
    for _ in range(times):
        with guarded():
            site_state.visits += 1


threads = [threading.Thread(target=visit, args=(n,)) for n in (3, 4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(site_state.title)
