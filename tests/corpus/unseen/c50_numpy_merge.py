# EXPECT: clean
import threading

import numpy as np

histogram = np.zeros(5, dtype=np.int64)
largest = None
lock = threading.Lock()


def classify(values):
    global histogram, largest
    local = np.zeros(5, dtype=np.int64)
    for value in values:
        local[value % 5] += 1
    top = int(values.max())
    with lock:
        histogram += local
        largest = top if largest is None else max(largest, top)


data = np.arange(42)
parts = np.array_split(data, 3)
threads = [threading.Thread(target=classify, args=(part,)) for part in parts]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(histogram.tolist(), largest)
