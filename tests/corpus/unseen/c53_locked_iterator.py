# EXPECT: clean
import threading


class Shared:
    """Makes any iterator usable from many threads."""

    def __init__(self, iterable):
        self._iterator = iter(iterable)
        self._lock = threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self._lock:
            return next(self._iterator)


def primes(limit):
    found = []
    for n in range(2, limit):
        if all(n % p for p in found):
            found.append(n)
            yield n


def take(source, out):
    for n in source:
        out.append(n)


source = Shared(primes(40))
outs = [[], [], []]
threads = [threading.Thread(target=take, args=(source, out)) for out in outs]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(n for out in outs for n in out))
