from puretext.stats import score, syllables


def test_syllables():
    assert syllables("readable") == 3
    assert syllables("x") == 1


def test_score():
    assert score("It is so.") > 100
