# EXPECT: lost update | global total in racy.py | 12, 12
"""Votes counted in a module variable."""

import threading

total = 0


def count_votes(votes):
    global total
    for _ in range(votes):
        total += 1


threads = [threading.Thread(target=count_votes, args=(40,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", total > 0)
