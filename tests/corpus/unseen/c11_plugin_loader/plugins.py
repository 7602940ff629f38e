"""Plugin table with a hand-made "once"."""
import threading

loaded = []


class Once:
    def __init__(self, make):
        self._make = make
        self._lock = threading.Lock()
        self._ready = False
        self._value = None

    def get(self):
        with self._lock:
            if not self._ready:
                self._value = self._make()
                self._ready = True
            return self._value


class Plugin:
    def __init__(self, name, function):
        self.name = name
        self.apply = function
        loaded.append(name)


_table = {
    "upper": Once(lambda: Plugin("upper", str.upper)),
    "title": Once(lambda: Plugin("title", str.title)),
    "reverse": Once(lambda: Plugin("reverse", lambda text: text[::-1])),
}


def get(name):
    return _table[name].get()
