# EXPECT: check-then-act | *_sessions* | 25, 26, 27
"""A tiny in-memory web session store and two request handlers."""
import itertools
import threading


class Session:
    def __init__(self, sid, serial):
        self.sid = sid
        self.serial = serial
        self.data = {}
        self.lock = threading.Lock()

    def remember(self, key, value):
        with self.lock:
            self.data.setdefault(key, []).append(value)


class SessionStore:
    def __init__(self):
        self._sessions = {}
        self._serial = itertools.count(1)

    def open(self, sid):
        if sid not in self._sessions:
            self._sessions[sid] = Session(sid, next(self._serial))
        return self._sessions[sid]

    def size(self):
        return len(self._sessions)


class Request:
    def __init__(self, sid, path):
        self.sid = sid
        self.path = path


class Handler(threading.Thread):
    def __init__(self, store, requests):
        super().__init__()
        self.store = store
        self.requests = requests
        self.served = 0

    def run(self):
        for request in self.requests:
            session = self.store.open(request.sid)
            session.remember("path", request.path)
            self.served += 1


def main():
    store = SessionStore()
    handlers = [
        Handler(store, [Request("alice", "/"), Request("alice", "/cart")]),
        Handler(store, [Request("alice", "/login"), Request("alice", "/pay")]),
    ]
    for handler in handlers:
        handler.start()
    for handler in handlers:
        handler.join()
    print("served", sum(h.served for h in handlers), "sessions", store.size())


if __name__ == "__main__":
    main()
