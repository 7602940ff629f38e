import unittest

import words


class Words(unittest.TestCase):
    def test_count(self):
        assert words.count(["a b a", "b c"]) == {"a": 2, "b": 2, "c": 1}
