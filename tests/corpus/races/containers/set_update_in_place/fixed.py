# EXPECT: clean
"""`tags = tags | more` builds a new set and forgets what came between."""

import threading

tags = set()


def tag(more):
    for one in more:
        tags.add(one)


threads = [threading.Thread(target=tag, args=(more,)) for more in ({"red"}, {"blue"})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("tagged:", len(tags) > 0)
