from pricetable.table import table


def test_table():
    assert len(table(5)) == 5
