# EXPECT: iteration during change | *listeners* | 10, 14
"""Listeners are told while one more registers."""

import threading

listeners = [len, str]


def register(listener):
    listeners.append(listener)


def notify(event):
    for listener in listeners:
        listener(event)


joining = threading.Thread(target=register, args=(repr,))
telling = threading.Thread(target=notify, args=("started",))
joining.start()
telling.start()
joining.join()
telling.join()
print(len(listeners), "listeners")
