from pricetable.table import table


def work():
    return len(table(1200))
