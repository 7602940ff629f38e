from sharder.ids import SHARDS, allocate


def test_allocate():
    for _ in range(20):
        number, shard = allocate()
        assert SHARDS[number % 7] == shard
