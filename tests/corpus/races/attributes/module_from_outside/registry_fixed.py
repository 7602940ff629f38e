"""The registry's size."""

import threading

size = 0
lock = threading.Lock()
