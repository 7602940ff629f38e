# EXPECT: clean
"""A configuration that is built in place; the repair hands out a finished one under a lock."""

import threading

config = {"level": 1}
config_lock = threading.Lock()


def reload(text):
    global config
    fresh = {}
    for pair in text.split():
        key, value = pair.split("=")
        fresh[key] = int(value)
    with config_lock:
        config = fresh


def level():
    with config_lock:
        return config.get("level", 0)


levels = []
reloading = threading.Thread(target=reload, args=("level=2 size=3",))
asking = threading.Thread(target=lambda: levels.append(level()))
reloading.start()
asking.start()
reloading.join()
asking.join()
print(config["size"], len(levels))
