"""Keep a stock; sales come from several threads."""

import threading


class Stock:
    """How much is there."""

    def __init__(self, count):
        self.count = count

    def sell(self):
        """Take one away."""
        self.count -= 1


def sell_all(stock, sellers):
    """Let each of the sellers sell one."""
    threads = [threading.Thread(target=stock.sell) for _ in range(sellers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
