from mainonly.index import rebuild


def test_rebuild():
    assert rebuild(10) == 10
