# EXPECT: check-then-act | *App.handlers | 17, 20
"""A class that gets its own table of handlers once, by a test for its name outside of the lock."""

import threading

lock = threading.Lock()
handlers = {"int": int}


class App:
    pass


def register(tag, out):
    with lock:
        pass
    if "handlers" not in App.__dict__:
        own = dict(handlers)
        with lock:
            App.handlers = own
    out.append(tag)


registered = []
threads = [threading.Thread(target=register, args=(tag, registered)) for tag in ("a", "b")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(registered))
