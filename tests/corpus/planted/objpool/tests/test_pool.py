from objpool.pool import compile_rules


def test_rule():
    assert compile_rules(3)(2) == 6
