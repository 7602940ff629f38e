# EXPECT: clean
"""Read under the lock, compute outside, write under the lock."""

import threading


class Model:
    def __init__(self):
        self.weight = 1.0
        self.lock = threading.Lock()

    def train(self, sample):
        with self.lock:
            weight = self.weight
            updated = weight + 0.1 * sample
            self.weight = updated


model = Model()


def epoch(samples):
    for sample in samples:
        model.train(sample)


trainers = [threading.Thread(target=epoch, args=([1, 2, 3],)) for _ in range(2)]
for trainer in trainers:
    trainer.start()
for trainer in trainers:
    trainer.join()
print("trained", model.weight > 1)
