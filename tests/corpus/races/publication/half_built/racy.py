# EXPECT: unsynchronised read/write | Settings.debug | 22, 26
"""Double-checked locking that shows the object before it is complete."""

import threading


class Settings:
    def __init__(self):
        self.debug = False


class Program:
    def __init__(self):
        self._settings = None
        self._lock = threading.Lock()

    def settings(self):
        if self._settings is None:
            with self._lock:
                if self._settings is None:
                    self._settings = Settings()
                    self._settings.debug = True
        return self._settings

    def start(self):
        return self.settings().debug in (True, False)


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
