from gridcalc.calc import series


def work():
    return str(series(30_000))
