# EXPECT-NOTE: double-checked locking | Program._settings | 13, 15, 18
"""Double-checked locking that shows a dict before its entries are there: some readers find none."""

import threading


class Program:
    def __init__(self):
        self._settings = None
        self._lock = threading.Lock()

    def settings(self):
        if self._settings is None:
            with self._lock:
                if self._settings is None:
                    settings = {}
                    settings["host"] = "localhost"
                    self._settings = settings
        return self._settings

    def start(self):
        return self.settings().get("host") in {None, "localhost"}


program = Program()
started = [None, None]


def start(index):
    started[index] = program.start()


threads = [threading.Thread(target=start, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(started)
