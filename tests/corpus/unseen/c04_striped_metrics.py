# EXPECT: clean
"""Metrics with lock striping: each shard has its own lock and dict."""
import threading
import zlib


class Shard:
    def __init__(self):
        self.lock = threading.Lock()
        self.values = {}


class Metrics:
    def __init__(self, shards=4):
        self._shards = [Shard() for _ in range(shards)]

    def _shard(self, name):
        return self._shards[zlib.crc32(name.encode()) % len(self._shards)]

    def inc(self, name, amount=1):
        shard = self._shard(name)
        with shard.lock:
            shard.values[name] = shard.values.get(name, 0) + amount

    def maximum(self, name, value):
        shard = self._shard(name)
        with shard.lock:
            if value > shard.values.get(name, 0):
                shard.values[name] = value

    def snapshot(self):
        merged = {}
        for shard in self._shards:
            with shard.lock:
                merged.update(shard.values)
        return dict(sorted(merged.items()))


def worker(metrics, number):
    for i in range(10):
        metrics.inc("requests")
        metrics.inc("bytes", i)
        metrics.maximum("slowest", number * i)
        if i % 5 == 0:
            metrics.snapshot()


def main():
    metrics = Metrics()
    threads = [threading.Thread(target=worker, args=(metrics, n)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(metrics.snapshot())


main()
