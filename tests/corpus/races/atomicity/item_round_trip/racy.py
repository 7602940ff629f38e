# EXPECT: lost update | *scores['ann'] | 12, 15 | atomicity
"""A dict's item fetched and stored under the lock, two times two."""

import threading

scores = {"ann": 0, "ben": 0}
lock = threading.Lock()


def win(name, points):
    with lock:
        score = scores[name]
    score += points
    with lock:
        scores[name] = score


def play(rounds):
    for points in rounds:
        win("ann", points)


tables = [threading.Thread(target=play, args=([1, 2, 3],)) for _ in range(2)]
for table in tables:
    table.start()
for table in tables:
    table.join()
print("played", scores["ben"])
