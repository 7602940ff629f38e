"""A least-recently-used cache with a linked list of our own, wrapped around a recursive computation."""

import functools
import threading


class Node:
    __slots__ = ("key", "newer", "older", "value")

    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.newer = self.older = None


class LruCache:
    """The newest node is `head.older`, the oldest `head.newer`: a ring through `head`."""

    def __init__(self, limit):
        self.limit = limit
        self.nodes = {}
        self.head = head = Node(None, None)
        head.newer = head.older = head
        self.lock = threading.Lock()
        self.hits = self.misses = self.evicted = 0

    def _unlink(self, node):
        node.newer.older = node.older
        node.older.newer = node.newer

    def _link(self, node):
        head = self.head
        node.newer, node.older = head, head.older
        head.older.newer = node
        head.older = node

    def get(self, key):
        with self.lock:
            node = self.nodes.get(key)
            if node is None:
                self.misses += 1
                return None
            self.hits += 1
            self._unlink(node)
            self._link(node)
            return node.value

    def put(self, key, value):
        with self.lock:
            node = self.nodes.get(key)
            if node is not None:
                node.value = value
                return
            if len(self.nodes) >= self.limit:
                oldest = self.head.newer
                self._unlink(oldest)
                del self.nodes[oldest.key]
                self.evicted += 1
            node = self.nodes[key] = Node(key, value)
            self._link(node)


def cached(limit):
    def decorate(function):
        cache = LruCache(limit)

        @functools.wraps(function)
        def wrapper(*args):
            value = cache.get(args)
            if value is None:
                value = function(*args)
                cache.put(args, value)
            return value

        wrapper.cache = cache
        return wrapper

    return decorate


@cached(limit=160)
def paths(right, down):
    """Count the ways through a grid."""
    if right == 0 or down == 0:
        return 1
    return paths(right - 1, down) + paths(right, down - 1)


def walk(start, step, results):
    total = 0
    for size in range(start, 12_000, step):
        total += paths(size % 17, size // 17 % 13)
    results[start] = total


def main():
    results = [0] * 4
    threads = [
        threading.Thread(target=walk, args=(start, len(results), results), name=f"walker-{start}")
        for start in range(len(results))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache = paths.cache
    print("checksum", sum(results) % 1_000_000_007, len(cache.nodes), cache.evicted > 0)


if __name__ == "__main__":
    main()
