# EXPECT-NOTE: readers see the old settings or the new | global config in fixed.py | 13, 17
"""One thread changes a copy of the settings and puts it in their place; another takes one reference."""

import threading

config = {"level": 0, "name": "v0"}


def update(level):
    global config
    new = dict(config)
    new["level"], new["name"] = level, f"v{level}"
    config = new


def show():
    seen = config
    assert seen["name"] == f"v{seen['level']}"


writer = threading.Thread(target=lambda: [update(level) for level in range(1, 4)])
reader = threading.Thread(target=lambda: [show() for _ in range(3)])
for thread in (writer, reader):
    thread.start()
for thread in (writer, reader):
    thread.join()
print("changed", config["level"] > 0)
