from thumbcache._vendor.minilru import LRU
from thumbcache.images import thumb


def test_thumb():
    assert thumb(3) == thumb(3)


def test_lru():
    c = LRU(1)
    c.get(1, str), c.get(2, str)
    assert list(c.data) == [2]
