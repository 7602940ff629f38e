# EXPECT: lost update | *postings* | 21
"""Indexes the words of the files in a folder."""
import os
import tempfile
import threading

TEXTS = {
    "one.txt": "the cat and the dog",
    "two.txt": "the bird and the fish",
    "three.txt": "the end",
    "four.txt": "and the rest",
}


class Indexer:
    def __init__(self, folder):
        self.folder = folder
        self.postings = {}

    def add_word(self, word):
        self.postings[word] = self.postings.get(word, 0) + 1

    def add_file(self, name):
        path = os.path.join(self.folder, name)
        with open(path, encoding="utf-8") as file:
            for line in file:
                for word in line.split():
                    self.add_word(word)

    def add_files(self, names):
        for name in names:
            self.add_file(name)


def write_texts(folder):
    for name, text in TEXTS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_texts(folder)
        indexer = Indexer(folder)
        names = sorted(TEXTS)
        threads = [
            threading.Thread(target=indexer.add_files, args=(names[:2],)),
            threading.Thread(target=indexer.add_files, args=(names[2:],)),
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(sorted(indexer.postings))


main()
