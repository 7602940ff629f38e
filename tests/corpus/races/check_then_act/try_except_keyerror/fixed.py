# EXPECT: clean
"""Easier to ask forgiveness than permission, but not with threads."""

import threading


class Topic:
    def __init__(self, name):
        self.name = name


topics = {}


def topic(name):
    return topics.setdefault(name, Topic(name))


names = [None, None]


def publish(index):
    names[index] = topic("news").name


threads = [threading.Thread(target=publish, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(names)
