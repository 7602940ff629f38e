# EXPECT: unsynchronised read/write | *Settings.current | 18, 21
# EXPECT: unsynchronised read/write | *Settings.current | 18, 24, 25
"""Settings are replaced as a whole, but a reader that loads them twice may mix two versions."""

import os
import tempfile
import threading
import time


class Settings:
    def __init__(self):
        self.current = {"host": "alpha", "port": 1}

    def reload(self, asked):
        while not os.path.exists(asked):    # once all have read: order that no thread can rely on
            time.sleep(0.01)
        self.current = {"host": "beta", "port": 2}

    def address(self):
        return self.current["host"], self.current["port"]

    def name(self):
        host = self.current["host"]
        port = self.current["port"]
        return f"{host}:{port}"


settings, others, found = Settings(), Settings(), []


def ask(path):
    found.append(settings.address())
    found.append(others.name())
    os.close(os.open(path, os.O_CREAT))


with tempfile.TemporaryDirectory() as folder:
    asked = os.path.join(folder, "asked")
    threads = [threading.Thread(target=target, args=(asked,)) for target in (settings.reload, others.reload, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(found)
