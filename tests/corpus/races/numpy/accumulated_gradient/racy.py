# EXPECT: lost update | Gradient.total | 15, 15
"""Partial sums added to one array in place."""

import threading

import numpy as np


class Gradient:
    def __init__(self, size):
        self.total = np.zeros(size)
        self.lock = threading.Lock()

    def add(self, part):
        self.total += part


gradient = Gradient(3)


def train(steps):
    for step in range(steps):
        gradient.add(np.full(3, step))


trainers = [threading.Thread(target=train, args=(4,)) for _ in range(2)]
for trainer in trainers:
    trainer.start()
for trainer in trainers:
    trainer.join()
print(gradient.total.shape)
