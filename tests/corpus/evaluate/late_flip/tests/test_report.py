import unittest

import report


class Report(unittest.TestCase):
    def test_lines(self):
        assert report.write([1, 2])[1:] == ["1", "2"]
