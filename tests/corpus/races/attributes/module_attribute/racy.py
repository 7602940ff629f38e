# EXPECT: lost update | *settings_racy.py | settings_racy.py:9, settings_racy.py:9
"""A variable of another module, changed through the module."""

import threading

import settings_racy as settings


def reload_often(times):
    for _ in range(times):
        settings.reload()


threads = [threading.Thread(target=reload_often, args=(6,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(settings.name, settings.generation > 0)
