# EXPECT: check-then-act | *leases['printer'] | 10, 11
"""The lease is removed if it is there."""

import threading

leases = {"printer": "ann", "scanner": "ben"}


def expire(name):
    if name in leases:
        del leases[name]


sweepers = [threading.Thread(target=expire, args=("printer",)) for _ in range(2)]
for sweeper in sweepers:
    sweeper.start()
for sweeper in sweepers:
    sweeper.join()
print(sorted(leases))
