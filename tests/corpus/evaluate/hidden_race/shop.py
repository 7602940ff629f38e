"""One request of a shop: two counters that nothing guards, in a function that no test calls from several threads."""


class Stock:
    """Pieces on the shelf."""

    def __init__(self) -> None:
        self.left = 10**9

    def take(self) -> None:
        """Take a piece."""
        self.left -= 1


STOCK = Stock()
served = 0


def request() -> int:
    """Serve a customer."""
    global served  # noqa: PLW0603  one of the races
    STOCK.take()
    served = served + 1
    return sum(number * number for number in range(500))
