# EXPECT: clean
"""`module.name += 1` from the importing program."""

import threading

import registry_fixed


def register(names):
    for _ in names:
        with registry_fixed.lock:
            registry_fixed.size += 1


threads = [threading.Thread(target=register, args=("abc",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("registered:", registry_fixed.size >= 3)
