from branchoffice.office import Office


def test_sell():
    before = Office.turnover
    Office("a").sell("x", 5)
    assert Office.turnover == before + 5
