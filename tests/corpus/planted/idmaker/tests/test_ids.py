from idmaker.ids import invoice


def test_distinct():
    assert invoice(1)[0] != invoice(1)[0]
