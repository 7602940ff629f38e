# EXPECT: clean
"""The lock lives in a threading.local: everybody has one."""

import threading

served = 0
lock = threading.Lock()


def serve(times):
    global served
    for _ in range(times):
        with lock:
            served += 1


waiters = [threading.Thread(target=serve, args=(5,)) for _ in range(2)]
for waiter in waiters:
    waiter.start()
for waiter in waiters:
    waiter.join()
print("served", served > 0)
