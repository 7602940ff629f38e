# EXPECT: clean
"""Word index over a folder; local counts merged by a helper under a lock."""
import os
import tempfile
import threading
from collections import Counter

TEXTS = {
    "one.txt": "the cat and the dog",
    "two.txt": "the bird and the fish",
    "three.txt": "the end",
    "four.txt": "and the rest",
}


class Index:
    def __init__(self):
        self._lock = threading.Lock()
        self._words = Counter()
        self._files = 0

    def _merge(self, words):
        for word, number in words.items():
            self._words[word] += number
        self._files += 1

    def publish(self, words):
        with self._lock:
            self._merge(words)

    def report(self):
        with self._lock:
            return self._files, sorted(self._words.items())


def scan(index, folder, names):
    for name in names:
        words = Counter()
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for line in file:
                words.update(line.split())
        index.publish(words)


def main():
    index = Index()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TEXTS.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        names = sorted(TEXTS)
        threads = [
            threading.Thread(target=scan, args=(index, folder, names[k::2]))
            for k in range(2)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    print(index.report())


main()
