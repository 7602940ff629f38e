# EXPECT: clean
"""Request statistics in a dataclass."""

from dataclasses import dataclass, field
from threading import Lock, Thread


@dataclass
class Stats:
    requests: int = 0
    errors: int = 0
    lock: Lock = field(default_factory=Lock, repr=False)

    def hit(self):
        with self.lock:
            self.requests += 1


def serve(stats, requests):
    for _ in range(requests):
        stats.hit()


stats = Stats()
servers = [Thread(target=serve, args=(stats, 25)) for _ in range(2)]
for server in servers:
    server.start()
for server in servers:
    server.join()
print("errors:", stats.errors)
