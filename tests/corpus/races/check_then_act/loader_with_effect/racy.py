# EXPECT: check-then-act | *rates['EUR'] | 21, 22, 24, 26
"""A cache whose test is outside of the lock of its store: the loader, which counts, may run twice for one key."""

import os
import threading

rates = {}
lock = threading.Lock()
loads = 0
loaded, write_end = os.pipe()    # orders the threads in time, and in no way that a checker may rely on


def load(currency):
    global loads
    with lock:
        loads += 1
    return len(currency) + 0.5


def rate(currency):
    if currency not in rates:
        value = load(currency)
        with lock:
            rates[currency] = value
    with lock:
        return rates[currency]


def first():
    rate("EUR")
    os.write(write_end, b"x")


def second():
    os.read(loaded, 1)
    with lock:
        pass    # orders the test after the store, by chance: it does not guard the test
    rate("EUR")


threads = [threading.Thread(target=first), threading.Thread(target=second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(rates)
