# EXPECT: clean
"""The attribute is read by its name into a local, which is tested and called; another thread stores None."""

import threading


class Plugin:
    hook = None


def unload(plugin):
    seen.append("unload")
    setattr(plugin, "hook", None)


def call(plugin):
    if hook := getattr(plugin, "hook", None):
        hook()


seen = []
plugin = Plugin()
plugin.hook = threading.Event
threads = [threading.Thread(target=unload, args=(plugin,)), threading.Thread(target=call, args=(plugin,))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(plugin.hook, seen)
