# EXPECT: clean
"""A deque of recent values: appended to here, averaged there."""

import threading
from collections import deque

history = deque([1.0, 2.0, 3.0], maxlen=5)


def record(values):
    for value in values:
        history.append(value)


def average(out):
    total = 0.0
    for value in history.copy():
        total += value
    out.append(total)


averages = []
recorder = threading.Thread(target=record, args=([4.0, 5.0],))
display = threading.Thread(target=average, args=(averages,))
recorder.start()
display.start()
recorder.join()
display.join()
print(history[-1], len(averages) <= 1)
