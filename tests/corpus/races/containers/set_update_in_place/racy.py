# EXPECT: lost update or torn multi-step write | global tags in racy.py | 11, 11
"""`tags = tags | more` builds a new set and forgets what came between."""

import threading

tags = frozenset()


def tag(more):
    global tags
    tags = tags | more


threads = [threading.Thread(target=tag, args=(more,)) for more in ({"red"}, {"blue"})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("tagged:", len(tags) > 0)
