# EXPECT: lost update or unsynchronised read/write | global config in racy.py | 11, 12
"""Two threads change copies of the settings and put them in their place: one change is lost."""

import threading

config = {"level": 0, "name": "v0"}


def update(level):
    global config
    new = {**config, "level": level, "name": f"v{level}"}
    config = new


writers = [threading.Thread(target=update, args=(level,)) for level in (1, 2)]
for thread in writers:
    thread.start()
for thread in writers:
    thread.join()
print("changed", config["level"] > 0)
