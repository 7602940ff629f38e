import unittest

from stock import Stock, sell_all


class Stocks(unittest.TestCase):
    def test_sold(self):
        stock = Stock(10)
        sell_all(stock, 4)
        assert stock.count <= 9
