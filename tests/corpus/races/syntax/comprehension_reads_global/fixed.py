# EXPECT: clean
"""A comprehension reads a global that another thread sets."""

import threading

rate = 1
rate_lock = threading.Lock()


def set_rate(value):
    global rate
    with rate_lock:
        rate = value


def convert(amounts, out):
    with rate_lock:
        now = rate
    out.append([amount * now for amount in amounts])


converted = []
setting = threading.Thread(target=set_rate, args=(2,))
converting = threading.Thread(target=convert, args=([1, 2, 3], converted))
setting.start()
converting.start()
setting.join()
converting.join()
print(rate, len(converted))
