# EXPECT: clean
"""The lease is removed if it is there."""

import threading

leases = {"printer": "ann", "scanner": "ben"}


def expire(name):
    leases.pop(name, None)


sweepers = [threading.Thread(target=expire, args=("printer",)) for _ in range(2)]
for sweeper in sweepers:
    sweeper.start()
for sweeper in sweepers:
    sweeper.join()
print(sorted(leases))
