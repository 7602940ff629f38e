from pricebook import book


def test_best():
    book.BIDS.clear()
    book.bid(3, 1)
    book.bid(9, 2)
    book.bid(5, 2)
    assert book.best() == (9, 2)
    book.drop(9)
    assert book.best() == (5, 2)
