"""A counter of prometheus-client, with a lock for each value (prometheus/client_python#167), and one a thread."""

import threading

from prometheus_client import Counter

REQUESTS = Counter("requests", "answered")
BY_THREAD = Counter("requests_by_thread", "answered, to be summed over threads", ["thread"])
OWN = threading.local()


def count():
    for _ in range(20):
        REQUESTS.inc()


def count_by_thread():
    requests = getattr(OWN, "requests", None)
    if requests is None:
        requests = OWN.requests = BY_THREAD.labels(threading.get_ident())
    for _ in range(20):
        requests.inc()
