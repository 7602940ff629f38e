from gridcalc.calc import series


def test_digits():
    assert len(str(series(5))) > 50
