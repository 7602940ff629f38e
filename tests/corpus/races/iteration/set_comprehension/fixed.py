# EXPECT: clean
"""A comprehension over a set that shrinks."""

import threading

online = {"ann", "ben", "cyd", "dee"}
lock = threading.Lock()


def leave(user):
    with lock:
        online.discard(user)


def long_names(out):
    with lock:
        out.append([user for user in online if len(user) > 5])


lists = []
leaving = threading.Thread(target=leave, args=("ben",))
listing = threading.Thread(target=long_names, args=(lists,))
leaving.start()
listing.start()
leaving.join()
listing.join()
print(sorted(online), len(lists) <= 1)
