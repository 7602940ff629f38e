from statpush.stats import Stats


def test_add():
    s = Stats()
    s.add("a"), s.add("a")
    assert s.counts == {"a": 2}


def test_reset():
    s = Stats()
    s.add("a")
    s.reset()
    assert s.seen == 0
