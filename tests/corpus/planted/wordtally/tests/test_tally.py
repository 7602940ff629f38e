from wordtally import tally


def test_counts():
    tally.TOTALS.clear()
    assert tally.add_document("a b a") == 3
    assert tally.TOTALS["a"] == 2


def test_words():
    assert tally.words("It is, so!") == ["it", "is", "so"]
