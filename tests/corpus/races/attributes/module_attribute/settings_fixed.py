"""Settings, and how often they were read again."""

import threading

name = "production"
generation = 0
_lock = threading.Lock()


def reload():
    global generation
    with _lock:
        generation += 1
