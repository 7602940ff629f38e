# EXPECT: unsynchronised read/write | *['host'] | 26, 30
"""Double-checked locking that shows a dict before its entries are there: some readers find none."""

import os
import tempfile
import threading
import time


class Program:
    def __init__(self, asked):
        self._settings = None
        self._lock = threading.Lock()
        self.asked = asked      # a file that exists once a reader has asked: order that no thread can rely on

    def settings(self):
        if self._settings is None:
            with self._lock:
                if self._settings is None:
                    settings = {}
                    self._settings = settings
                    for _ in range(200):
                        if os.path.exists(self.asked):
                            break
                        time.sleep(0.01)
                    settings["host"] = "localhost"
        return self._settings

    def start(self):
        return self.settings().get("host") in {None, "localhost"}


with tempfile.TemporaryDirectory() as folder:
    program = Program(os.path.join(folder, "asked"))
    started = [None, None]

    def start(index):
        started[index] = program.start()
        os.close(os.open(program.asked, os.O_CREAT))

    threads = [threading.Thread(target=start, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(started)
