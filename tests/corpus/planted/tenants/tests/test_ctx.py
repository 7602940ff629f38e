from tenants.ctx import bill, spend


def test_bill():
    bill()
    spend("a", 2), spend("a", 3)
    assert bill() == 5
    assert bill() == 0
