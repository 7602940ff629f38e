# EXPECT: unsynchronised read/write or torn multi-step write | *config['host'] | 11, 16
# EXPECT: unsynchronised read/write or torn multi-step write | *config['port'] | 12, 17
"""Two keys that belong together, read while they are replaced."""

import threading

config = {"host": "alpha", "port": 1}


def move(host, port):
    config["host"] = host
    config["port"] = port


def address():
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
