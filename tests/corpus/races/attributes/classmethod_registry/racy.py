# EXPECT: lost update | Plugin.loaded | 13, 13
"""A class method that rebinds a tuple of what is loaded."""

import threading


class Plugin:
    loaded = ()
    lock = threading.Lock()

    @classmethod
    def load(cls, name):
        cls.loaded = (*cls.loaded, name)


def load_all(names):
    for name in names:
        Plugin.load(name)


first = threading.Thread(target=load_all, args=(["audio", "video"],))
second = threading.Thread(target=load_all, args=(["text", "image"],))
first.start()
second.start()
first.join()
second.join()
print("something is loaded:", bool(Plugin.loaded))
