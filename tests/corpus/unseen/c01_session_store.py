# EXPECT: clean
"""Web session store: atomic setdefault, then a lock in each session."""
import threading


class Session:
    def __init__(self, sid):
        self.sid = sid
        self.hits = 0
        self.paths = {}
        self._lock = threading.Lock()

    def visit(self, path):
        with self._lock:
            self.hits += 1
            self.paths[path] = self.paths.get(path, 0) + 1

    def summary(self):
        with self._lock:
            return self.sid, self.hits, dict(sorted(self.paths.items()))


class SessionStore:
    def __init__(self):
        self._sessions = {}

    def open(self, sid):
        return self._sessions.setdefault(sid, Session(sid))

    def all(self):
        return [self._sessions[sid] for sid in sorted(self._sessions)]


class Handler(threading.Thread):
    def __init__(self, store, requests):
        super().__init__()
        self.store = store
        self.requests = requests

    def run(self):
        for sid, path in self.requests:
            self.store.open(sid).visit(path)


def main():
    store = SessionStore()
    handlers = [
        Handler(store, [("ann", "/"), ("bob", "/"), ("ann", "/cart")]),
        Handler(store, [("bob", "/"), ("ann", "/"), ("bob", "/pay")]),
    ]
    for h in handlers:
        h.start()
    for h in handlers:
        h.join()
    for session in store.all():
        print(session.summary())


if __name__ == "__main__":
    main()
