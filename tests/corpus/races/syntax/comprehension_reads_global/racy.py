# EXPECT: unsynchronised read/write | global rate in racy.py | 11, 15
"""A comprehension reads a global that another thread sets."""

import threading

rate = 1


def set_rate(value):
    global rate
    rate = value


def convert(amounts, out):
    out.append([amount * rate for amount in amounts])


converted = []
setting = threading.Thread(target=set_rate, args=(2,))
converting = threading.Thread(target=convert, args=([1, 2, 3], converted))
setting.start()
converting.start()
setting.join()
converting.join()
print(rate, len(converted))
