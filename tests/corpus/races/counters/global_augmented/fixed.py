# EXPECT: clean
"""Votes counted in a module variable."""

import threading

total = 0
total_lock = threading.Lock()


def count_votes(votes):
    global total
    for _ in range(votes):
        with total_lock:
            total += 1


threads = [threading.Thread(target=count_votes, args=(40,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", total > 0)
