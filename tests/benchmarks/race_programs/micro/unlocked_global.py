"""Four threads count in one global, without a lock: a race."""

import threading

total = 0


def count(times):
    global total
    for _ in range(times):
        total += 1


threads = [threading.Thread(target=count, args=(400_000,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", total > 0)
