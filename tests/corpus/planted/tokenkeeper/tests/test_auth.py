from tokenkeeper import auth


def test_renew():
    k = auth.Keeper()
    k.until = 0
    k.current()
    assert k.renewals == 2


def test_sign():
    assert auth.sign("x") == auth.sign("x")
