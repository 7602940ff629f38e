from sensorbuf import buf


def test_add():
    before = buf.total()
    buf.add(3, 2.0)
    assert buf.total() == before + 2
