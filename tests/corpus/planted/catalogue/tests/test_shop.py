from catalogue.shop import expensive, page


def test_expensive():
    assert len(expensive(50)) == 980
    assert len(page(50)) == 981
