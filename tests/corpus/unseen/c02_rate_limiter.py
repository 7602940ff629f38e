# EXPECT: clean
"""Token bucket whose take is one critical section."""
import threading


class Clock:
    """A clock which advances by one each time it is asked."""

    def __init__(self):
        self._lock = threading.Lock()
        self._now = 0

    def __call__(self):
        with self._lock:
            self._now += 1
            return self._now


class TokenBucket:
    def __init__(self, capacity, rate, clock):
        self._lock = threading.Lock()
        self._capacity = capacity
        self._tokens = capacity
        self._rate = rate
        self._clock = clock
        self._stamp = clock()

    def _refill(self):
        now = self._clock()
        gained = (now - self._stamp) * self._rate
        self._tokens = min(self._capacity, self._tokens + gained)
        self._stamp = now

    def try_take(self):
        with self._lock:
            self._refill()
            if self._tokens >= 1:
                self._tokens -= 1
                return True
            return False


def client(bucket, tries, accepted):
    for _ in range(tries):
        accepted.append(bucket.try_take())


def main():
    bucket = TokenBucket(10, 0, Clock())
    accepted = [[] for _ in range(3)]
    threads = [
        threading.Thread(target=client, args=(bucket, 8, log)) for log in accepted
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sum(map(sum, accepted)))


main()
