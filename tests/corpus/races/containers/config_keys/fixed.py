# EXPECT: clean
"""Two keys that belong together, read while they are replaced."""

import threading

config = {"host": "alpha", "port": 1}
lock = threading.Lock()


def move(host, port):
    with lock:
        config["host"] = host
        config["port"] = port


def address():
    with lock:
        host = config["host"]
        port = config["port"]
    return f"{host}:{port}"


seen = []
mover = threading.Thread(target=move, args=("beta", 2))
caller = threading.Thread(target=lambda: seen.append(address()))
mover.start()
caller.start()
mover.join()
caller.join()
print(address(), len(seen))
