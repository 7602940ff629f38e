# EXPECT: clean
"""Scoreboard under a hand-made readers-writer lock."""
import threading
from contextlib import contextmanager


class ReadWriteLock:
    def __init__(self):
        self._changed = threading.Condition()
        self._readers = 0
        self._writing = False

    @contextmanager
    def reading(self):
        with self._changed:
            while self._writing:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self):
        with self._changed:
            while self._writing or self._readers:
                self._changed.wait()
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()


class Scoreboard:
    def __init__(self):
        self._guard = ReadWriteLock()
        self._scores = {}
        self._best = 0

    def add(self, player, points):
        with self._guard.writing():
            score = self._scores.get(player, 0) + points
            self._scores[player] = score
            if score > self._best:
                self._best = score

    def best(self):
        with self._guard.reading():
            return self._best, sorted(self._scores)


def player(board, name, points):
    for p in points:
        board.add(name, p)
        board.add("team", p)


def watcher(board, seen):
    for _ in range(10):
        seen.append(board.best()[0])


def main():
    board = Scoreboard()
    seen = []
    threads = [
        threading.Thread(target=player, args=(board, "ann", [1, 2, 3])),
        threading.Thread(target=player, args=(board, "bob", [10, 20])),
        threading.Thread(target=watcher, args=(board, seen)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(board.best(), seen == sorted(seen))


main()
