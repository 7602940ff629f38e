from routeplan.table import cost, table


def test_cost():
    assert cost([1, 2, 3]) == table()[1, 2] + table()[2, 3]
