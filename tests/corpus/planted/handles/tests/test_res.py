from handles import res


def test_count():
    before = res.in_use
    b = res.Buffer(3)
    assert res.in_use == before + 1
    del b
    assert res.in_use == before
