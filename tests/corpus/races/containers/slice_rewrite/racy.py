# EXPECT: torn multi-step write or lost update | *window* | 11, 11
"""A sliding window rewritten through a slice."""

import threading

window = [0] * 5


def measure(values):
    for value in values:
        window[:] = window[1:] + [value]


sensors = [threading.Thread(target=measure, args=(values,)) for values in ([1, 2, 3], [7, 8, 9])]
for sensor in sensors:
    sensor.start()
for sensor in sensors:
    sensor.join()
print("window of", len(window))
