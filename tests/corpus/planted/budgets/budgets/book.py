"""One Account for each name; whoever asks gets the same one."""
import functools
import threading


class Account:
    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()
        self.spent = []

    def spend(self, amount):
        with self.lock:
            self.spent.append(amount)
            return len(self.spent) <= 100_000


_making = threading.RLock()
_account = functools.lru_cache(maxsize=None)(Account)


def account(name):
    with _making:
        return _account(name)


def cost(n):
    return sum(i * n % 13 for i in range(150))
