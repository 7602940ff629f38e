# EXPECT: clean
"""The test for the name is made under the lock."""

import threading

lock = threading.Lock()
handlers = {"int": int}


class App:
    pass


def register(tag, out):
    with lock:
        if "handlers" not in App.__dict__:
            App.handlers = dict(handlers)
    out.append(tag)


registered = []
threads = [threading.Thread(target=register, args=(tag, registered)) for tag in ("a", "b")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(registered))
