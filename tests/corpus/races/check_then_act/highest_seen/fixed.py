# EXPECT: clean
"""A maximum kept by comparing first."""

import threading


class Record:
    def __init__(self):
        self.best = 0
        self.lock = threading.Lock()

    def offer(self, score):
        with self.lock:
            if score > self.best:
                self.best = score


record = Record()


def play(scores):
    for score in scores:
        record.offer(score)


players = [threading.Thread(target=play, args=(scores,)) for scores in ([3, 9, 4], [5, 2, 8])]
for player in players:
    player.start()
for player in players:
    player.join()
print("a record was set:", record.best > 0)
