from ._vendor.minilru import LRU

cache = LRU(10_000)


def shrink(key):
    return sum(i * key & 255 for i in range(200))


def thumb(key):
    return cache.get(key, shrink)
