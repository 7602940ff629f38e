# EXPECT: clean
"""The next id: read under the lock, advanced under the lock."""

import threading

next_id = 1
id_lock = threading.Lock()


def new_id():
    global next_id
    with id_lock:
        mine = next_id
        next_id = mine + 1
    return mine


ids = [[], []]


def take(out):
    out.extend(new_id() for _ in range(3))


takers = [threading.Thread(target=take, args=(out,)) for out in ids]
for taker in takers:
    taker.start()
for taker in takers:
    taker.join()
print([len(out) for out in ids])
