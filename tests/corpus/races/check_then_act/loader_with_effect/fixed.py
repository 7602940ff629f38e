# EXPECT: clean
"""One lock from the test to the store: the loader runs once for each key."""

import threading

rates = {}
lock = threading.Lock()
loads = 0


def load(currency):
    global loads
    loads += 1
    return len(currency) + 0.5


def rate(currency):
    with lock:
        if currency not in rates:
            rates[currency] = load(currency)
        return rates[currency]


def work():
    rate("EUR")


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(rates)
