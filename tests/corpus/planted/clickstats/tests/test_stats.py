from clickstats.stats import Stats


def test_case():
    s = Stats({"home": 0})
    s["Home"] += 1
    assert s["HOME"] == 1
