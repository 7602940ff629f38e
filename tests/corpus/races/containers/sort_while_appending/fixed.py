# EXPECT: clean
"""A list sorted in place by key while others append."""

import threading

scores = [(3, "ann"), (1, "ben")]
lock = threading.Lock()


def rank():
    with lock:
        scores.sort(key=lambda entry: entry[0])


def finish(name, points):
    with lock:
        scores.append((points, name))


ranking = threading.Thread(target=rank)
finishing = threading.Thread(target=finish, args=("cy", 2))
ranking.start()
finishing.start()
ranking.join()
finishing.join()
print("ranked", len(scores) >= 2)
