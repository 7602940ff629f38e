from budgets.book import account


def test_same():
    assert account("a") is account("a")
    assert account("a").spend(3)
