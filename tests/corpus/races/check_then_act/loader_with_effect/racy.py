# EXPECT: check-then-act | *rates['EUR'] | 22, 23, 25, 27
"""A cache whose test is outside of the lock of its store: the loader, which counts, may run twice for one key."""

import os
import threading

rates = {}
lock = threading.Lock()
loads = 0
# files on a pipe order the threads in time, and in no way that a checker may rely on
loaded, write_end = (open(end, mode, 0) for end, mode in zip(os.pipe(), ("rb", "wb")))


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
    write_end.write(b"x")


def second():
    loaded.read(1)
    with lock:
        pass    # orders the test after the store, by chance: it does not guard the test
    rate("EUR")


threads = [threading.Thread(target=first), threading.Thread(target=second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(rates)
