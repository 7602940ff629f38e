# EXPECT: check-then-act | Database._instance | 13, 14, 15
"""The instance is made by whoever finds none."""

import threading


class Database:
    _instance = None
    _lock = threading.Lock()

    @classmethod
    def instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance


found = [None, None]


def connect(index):
    found[index] = Database.instance()


threads = [threading.Thread(target=connect, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(type(found[0]).__name__, type(found[1]).__name__)
