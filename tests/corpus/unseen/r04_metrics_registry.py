# EXPECT: lost update | Gauge.value | 12
"""Metrics registry: names are looked up under a lock."""
import threading


class Gauge:
    def __init__(self, name):
        self.name = name
        self.value = 0

    def inc(self, amount=1):
        self.value += amount


class Registry:
    def __init__(self):
        self._lock = threading.Lock()
        self._gauges = {}

    def gauge(self, name):
        with self._lock:
            found = self._gauges.get(name)
            if found is None:
                found = self._gauges[name] = Gauge(name)
            return found

    def names(self):
        with self._lock:
            return sorted(self._gauges)


class Service:
    def __init__(self, registry):
        self.registry = registry

    def handle(self, payload):
        size = len(payload)
        self.registry.gauge("requests").inc()
        return size


class App:
    def __init__(self):
        self.registry = Registry()
        self.service = Service(self.registry)

    def run(self, payloads, sizes):
        for payload in payloads:
            sizes.append(self.service.handle(payload))


def main():
    app = App()
    left, right = [], []
    threads = [
        threading.Thread(target=app.run, args=(["a" * n for n in range(10)], left)),
        threading.Thread(target=app.run, args=(["b" * n for n in range(10)], right)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(app.registry.names(), sum(left), sum(right))


main()
