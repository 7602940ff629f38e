# EXPECT: clean
"""Rotation in a logging handler: emit() runs under the handler's own lock."""
import logging
import threading


class RotatingMemoryHandler(logging.Handler):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.size = 0
        self.current = []
        self.archives = []

    def rotate(self):
        self.archives.append(self.current)
        self.current = []
        self.size = 0

    def emit(self, record):
        text = self.format(record)
        if self.size + len(text) > self.limit:
            self.rotate()
        self.current.append(text)
        self.size += len(text)


class Component(threading.Thread):
    def __init__(self, name, log, count):
        super().__init__(name=name)
        self.log = log
        self.count = count

    def run(self):
        for number in range(self.count):
            self.log.info("%s says %02d", self.name, number)


def main():
    log = logging.getLogger("c20")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = RotatingMemoryHandler(limit=60)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    components = [Component(name, log, 8) for name in ("db", "io", "ui")]
    for c in components:
        c.start()
    for c in components:
        c.join()
    log.removeHandler(handler)
    parts = handler.archives + [handler.current]
    print(len(parts), sum(map(len, parts)), handler.size)
    print(sorted(line for part in parts for line in part)[:3])


main()
