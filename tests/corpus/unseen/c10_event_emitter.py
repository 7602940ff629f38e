# EXPECT: clean
"""Event emitter which calls a copy of the listeners outside of its lock."""
import threading
from collections import defaultdict


class Emitter:
    def __init__(self):
        self._lock = threading.Lock()
        self._listeners = defaultdict(list)

    def on(self, event, callback):
        with self._lock:
            self._listeners[event].append(callback)

        def off():
            with self._lock:
                self._listeners[event].remove(callback)

        return off

    def emit(self, event, *args):
        with self._lock:
            listeners = list(self._listeners[event])
        for listener in listeners:
            listener(*args)


class Audit:
    def __init__(self):
        self.seen = []

    def __call__(self, document):
        self.seen.append(document)


def publisher(emitter, name):
    for n in range(8):
        emitter.emit("saved", "%s%d" % (name, n))


def subscriber(emitter):
    for _ in range(8):
        off = emitter.on("saved", lambda document: None)
        off()


def main():
    emitter = Emitter()
    audit = Audit()
    emitter.on("saved", audit)
    threads = [
        threading.Thread(target=publisher, args=(emitter, "a")),
        threading.Thread(target=publisher, args=(emitter, "b")),
        threading.Thread(target=subscriber, args=(emitter,)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sorted(audit.seen))


main()
