import unittest

import poll


class Poll(unittest.TestCase):
    def test_all_answer(self):
        assert poll.ask_all(3) == [20, 20, 20]
