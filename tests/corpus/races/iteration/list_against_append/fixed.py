# EXPECT: clean
"""Listeners are told while one more registers."""

import threading

listeners = [len, str]
lock = threading.Lock()


def register(listener):
    with lock:
        listeners.append(listener)


def notify(event):
    with lock:
        known = list(listeners)
    for listener in known:
        listener(event)


joining = threading.Thread(target=register, args=(repr,))
telling = threading.Thread(target=notify, args=("started",))
joining.start()
telling.start()
joining.join()
telling.join()
print(len(listeners), "listeners")
