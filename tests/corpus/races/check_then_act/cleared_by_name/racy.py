# EXPECT: check-then-act | Plugin.hook | 13, 17, 18
"""The attribute is tested by its name and then called, while another thread stores None."""

import threading


class Plugin:
    hook = None


def unload(plugin):
    seen.append("unload")
    setattr(plugin, "hook", None)


def call(plugin):
    if getattr(plugin, "hook", None):
        plugin.hook()


seen = []
plugin = Plugin()
plugin.hook = threading.Event
threads = [threading.Thread(target=unload, args=(plugin,)), threading.Thread(target=call, args=(plugin,))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(plugin.hook, seen)
