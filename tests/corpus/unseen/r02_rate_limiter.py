# EXPECT: check-then-act or lost update | TokenBucket.tokens | 14, 15
"""Token bucket used by the workers of an API client."""
import threading


class TokenBucket:
    def __init__(self, capacity, clock):
        self.capacity = capacity
        self.tokens = capacity
        self.clock = clock
        self.stamp = clock()

    def try_take(self, cost=1):
        if self.tokens >= cost:
            self.tokens -= cost
            return True
        return False


class Api:
    def __init__(self, bucket):
        self.bucket = bucket
        self.calls = threading.local()

    def call(self, endpoint):
        if not self.bucket.try_take():
            return 429, endpoint
        return 200, endpoint.upper()


class Worker(threading.Thread):
    def __init__(self, api, endpoints):
        super().__init__(name="worker-" + endpoints[0])
        self.api = api
        self.endpoints = endpoints
        self.answers = []

    def run(self):
        for endpoint in self.endpoints:
            self.answers.append(self.api.call(endpoint))


def fake_clock():
    return 0.0


def main():
    api = Api(TokenBucket(1000, fake_clock))
    workers = [
        Worker(api, ["users"] * 20),
        Worker(api, ["items"] * 20),
        Worker(api, ["carts"] * 20),
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    ok = sum(status == 200 for w in workers for status, _ in w.answers)
    print("accepted", ok)


main()
