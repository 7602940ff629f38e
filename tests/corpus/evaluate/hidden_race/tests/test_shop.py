"""Nothing here starts a thread."""

import unittest

import shop


class Request(unittest.TestCase):
    """What one customer sees."""

    def test_it_is_served(self) -> None:
        """One request."""
        assert shop.request() == sum(number * number for number in range(500))
