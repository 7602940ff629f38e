# EXPECT: lost update | *histogram* | 11
import threading

import numpy as np

histogram = np.zeros(5, dtype=np.int64)


def classify(values):
    for value in values:
        histogram[value % 5] += 1


data = np.arange(40)
halves = [data[:20], data[20:]]
threads = [threading.Thread(target=classify, args=(half,)) for half in halves]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(histogram.shape)
