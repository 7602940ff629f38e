"""Hands out ids; id n belongs to shard n % 7."""
import itertools

SHARDS = tuple("abcdefg")
_ids = zip(itertools.count(), itertools.cycle(SHARDS))


def allocate():
    return next(_ids)


def load_of(number, shard):
    return sum(ord(shard) * i % 11 for i in range(20)) + number
