# EXPECT: lost update | global served in racy.py | 15, 15
"""The lock lives in a threading.local: everybody has one."""

import threading

served = 0
mine = threading.local()


def serve(times):
    global served
    mine.lock = threading.Lock()
    for _ in range(times):
        with mine.lock:
            served += 1


waiters = [threading.Thread(target=serve, args=(5,)) for _ in range(2)]
for waiter in waiters:
    waiter.start()
for waiter in waiters:
    waiter.join()
print("served", served > 0)
