"""A counter of prometheus-client, with a lock for each value (prometheus/client_python#167)."""

from prometheus_client import Counter

REQUESTS = Counter("requests", "answered")


def count():
    for _ in range(20):
        REQUESTS.inc()
