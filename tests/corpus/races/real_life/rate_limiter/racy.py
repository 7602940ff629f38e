# EXPECT: check-then-act | Bucket.tokens | 15, 18
# EXPECT: lost update | Bucket.tokens | 18, 18
"""A token bucket shared by the requests."""

import threading


class Bucket:
    def __init__(self, tokens):
        self.tokens = tokens
        self.refused = []
        self._lock = threading.Lock()

    def take(self, request):
        if self.tokens < 1:
            self.refused.append(request)
            return False
        self.tokens -= 1
        return True


bucket = Bucket(20)
answers = [[], []]


def client(number, out):
    for request in range(3):
        out.append(bucket.take((number, request)))


clients = [threading.Thread(target=client, args=(number, out)) for number, out in enumerate(answers)]
for each in clients:
    each.start()
for each in clients:
    each.join()
print(answers, bucket.refused)
