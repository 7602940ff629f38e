# EXPECT: iteration during change | *_listeners* | 13, 16
"""Event emitter with late subscribers."""
import threading


class Emitter:
    def __init__(self, *events):
        self._lock = threading.Lock()
        self._listeners = {event: [] for event in events}

    def on(self, event, callback):
        with self._lock:
            self._listeners[event].append(callback)

    def emit(self, event, *args):
        for callback in self._listeners[event]:
            callback(*args)


class Audit:
    def __init__(self):
        self.lines = []

    def __call__(self, what):
        self.lines.append("audit " + what)


class Silent:
    def __call__(self, what):
        pass


def publisher(emitter):
    for n in range(15):
        emitter.emit("saved", "doc%d" % n)


def subscriber(emitter):
    for _ in range(15):
        emitter.on("saved", Silent())


def main():
    emitter = Emitter("saved", "deleted")
    audit = Audit()
    emitter.on("saved", audit)
    threads = [
        threading.Thread(target=publisher, args=(emitter,)),
        threading.Thread(target=subscriber, args=(emitter,)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(audit.lines), audit.lines[-1])


if __name__ == "__main__":
    main()
