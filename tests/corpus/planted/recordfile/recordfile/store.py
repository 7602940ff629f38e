"""Fixed-size records in one file, kept open."""
import os
import tempfile

SIZE = 64


class Store:
    def __init__(self, path):
        self.file = open(path, "r+b")

    def read(self, number):
        self.file.seek(number * SIZE)
        return self.file.read(SIZE)


def make(count=2000):
    fd, path = tempfile.mkstemp(suffix=".rec")
    with os.fdopen(fd, "wb") as out:
        for n in range(count):
            out.write(str(n).encode().ljust(SIZE, b"."))
    store = Store(path)
    os.unlink(path)
    return store


main = make()
