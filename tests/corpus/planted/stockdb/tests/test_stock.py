from stockdb import stock


def test_take():
    before = stock.left("item0")
    assert stock.take("item0", 3)
    assert stock.left("item0") == before - 3


def test_too_many():
    assert not stock.take("item1", 10**12)
