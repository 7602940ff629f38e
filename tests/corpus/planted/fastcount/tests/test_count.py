from fastcount import bump, value


def test_bump():
    before = value(9)
    bump(9)
    assert value(9) == before + 1
