# EXPECT: clean
"""Configuration swapped as a whole: an immutable snapshot, one store, one load."""
import json
import threading
from typing import NamedTuple


class Config(NamedTuple):
    host: str
    port: int
    options: tuple = ()

    @classmethod
    def parse(cls, text):
        raw = json.loads(text)
        options = tuple(sorted(raw.get("options", {}).items()))
        return cls(raw["host"], raw["port"], options)

    @property
    def consistent(self):
        return self.host == "db%d" % (self.port - 5000)


class ConfigHolder:
    def __init__(self, text):
        self._write_lock = threading.Lock()
        self._current = Config.parse(text)

    def current(self):
        return self._current

    def reload(self, text):
        fresh = Config.parse(text)
        with self._write_lock:
            self._current = fresh


def client(holder, verdicts):
    for _ in range(20):
        config = holder.current()
        verdicts.append(config.consistent)


def reloader(holder, numbers):
    for n in numbers:
        holder.reload(json.dumps({"host": "db%d" % n, "port": 5000 + n}))


def main():
    holder = ConfigHolder('{"host": "db1", "port": 5001, "options": {"tls": 1}}')
    verdicts = []
    threads = [
        threading.Thread(target=client, args=(holder, verdicts)),
        threading.Thread(target=client, args=(holder, verdicts)),
        threading.Thread(target=reloader, args=(holder, range(2, 9))),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(verdicts), all(verdicts), holder.current())


main()
