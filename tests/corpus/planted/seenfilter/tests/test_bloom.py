from seenfilter.bloom import Bloom


def test_add():
    b = Bloom()
    b.add("x")
    assert "x" in b
    assert "y" not in b


def test_many():
    b = Bloom()
    for i in range(100):
        b.add(str(i))
    assert all(str(i) in b for i in range(100))
