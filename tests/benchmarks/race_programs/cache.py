"""A read-through cache with expiry by age, in front of a slow "database", used by four request handlers."""

import random
import threading
from dataclasses import dataclass


@dataclass(slots=True)
class Entry:
    value: dict
    loaded_at: int


class Database:
    """Rows computed on demand; counts what it was asked."""

    def __init__(self, rows):
        self.rows = rows
        self.lock = threading.Lock()
        self.queries = 0

    def load(self, key):
        with self.lock:
            self.queries += 1
        total = 0
        for step in range(60):
            total = (total * 31 + key * step) % 1_000_003
        return {"id": key % self.rows, "name": f"row-{key}", "score": total}


class Cache:
    """Keeps entries until they are `max_age` ticks old; a tick passes with each request."""

    def __init__(self, database, max_age, limit):
        self.database = database
        self.max_age = max_age
        self.limit = limit
        self.entries = {}
        self.clock = 0
        self.hits = 0
        self.misses = 0
        self.lock = threading.Lock()

    def get(self, key):
        with self.lock:
            self.clock += 1
            entry = self.entries.get(key)
            if entry is not None and self.clock - entry.loaded_at <= self.max_age:
                self.hits += 1
                return entry.value
            self.misses += 1
        value = self.database.load(key)
        with self.lock:
            entry = self.entries.get(key)
            if entry is None or self.clock - entry.loaded_at > self.max_age:   # nobody else loaded it meanwhile
                if len(self.entries) >= self.limit:
                    self.evict()
                self.entries[key] = Entry(value, self.clock)
        return value

    def evict(self):
        oldest = sorted(self.entries.items(), key=lambda item: item[1].loaded_at)
        for key, _ in oldest[: self.limit // 4]:
            del self.entries[key]


def render(row):
    words = [row["name"].title(), str(row["score"]), f"#{row['id']:05}"]
    return " ".join(words)


def handle(cache, seed, requests, lengths):
    chosen = random.Random(seed)
    total = 0
    for _ in range(requests):
        key = int(chosen.paretovariate(1.1)) % 500
        page = "\n".join(render(cache.get(key + offset)) for offset in range(3))
        total += sum(len(line) for line in page.splitlines())
    lengths[seed] = total


def main():
    cache = Cache(Database(1_000), max_age=2_000, limit=256)
    lengths = [0] * 4
    handlers = [
        threading.Thread(target=handle, args=(cache, seed, 4_000, lengths), name=f"handler-{seed}")
        for seed in range(len(lengths))
    ]
    for handler in handlers:
        handler.start()
    for handler in handlers:
        handler.join()
    assert cache.hits + cache.misses == 4 * 4_000 * 3
    print("checksum", sum(lengths), cache.hits > cache.misses)


if __name__ == "__main__":
    main()
