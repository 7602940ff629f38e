# EXPECT: unsynchronised read/write | *config* | 11, 18, 14
"""A configuration that is built in place; the repair hands out a finished one under a lock."""

import threading

config = {"level": 1}


def reload(text):
    global config
    config = {}
    for pair in text.split():
        key, value = pair.split("=")
        config[key] = int(value)


def level():
    return config.get("level", 0)


levels = []
reloading = threading.Thread(target=reload, args=("level=2 size=3",))
asking = threading.Thread(target=lambda: levels.append(level()))
reloading.start()
asking.start()
reloading.join()
asking.join()
print(config["size"], len(levels))
