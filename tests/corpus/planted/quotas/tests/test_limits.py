from quotas.limits import Quota, quota_of, send


def test_take():
    q = Quota("a", 3)
    assert q.take(2) and not q.take(2)


def test_same():
    assert quota_of("x") is quota_of("x")
    assert send("x")
