from collections import UserDict


class Stats(UserDict):
    """Keys are case-insensitive."""

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __missing__(self, key):
        return 0


STATS = Stats({"home": 0, "shop": 0, "blog": 0})


def click(page):
    STATS[page] += 1
