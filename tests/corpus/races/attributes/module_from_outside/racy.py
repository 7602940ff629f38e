# EXPECT: lost update | *registry_racy.py | 11, 11
"""`module.name += 1` from the importing program."""

import threading

import registry_racy


def register(names):
    for _ in names:
        registry_racy.size += 1


threads = [threading.Thread(target=register, args=("abc",)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("registered:", registry_racy.size >= 3)
