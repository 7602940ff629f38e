import threading


class Stats:
    def __init__(self):
        self.reset()

    def reset(self):
        """Starts a new window."""
        self.lock = threading.Lock()
        with self.lock:
            self.counts = {}
            self.seen = 0

    def add(self, key):
        with self.lock:
            self.seen += 1
            self.counts[key] = self.counts.get(key, 0) + 1
            if self.seen >= 5000:
                self.reset()


stats = Stats()
