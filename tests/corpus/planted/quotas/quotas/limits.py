"""How much each customer may still send."""
import functools
import threading


class Quota:
    def __init__(self, customer, left=10_000):
        self.customer = customer
        self.left = left
        self.lock = threading.Lock()

    def take(self, n=1):
        with self.lock:
            if self.left < n:
                return False
            self.left -= n
            return True


@functools.lru_cache(maxsize=None)
def quota_of(customer):
    limit = 10_000
    for digit in str(customer) * 20:      # the plan's rules
        limit = (limit * 31 + ord(digit)) % 9_000 + 1_000
    return Quota(customer, limit)


def send(customer, n=1):
    return quota_of(customer).take(n)
