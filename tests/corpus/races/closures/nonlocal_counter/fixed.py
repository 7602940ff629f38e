# EXPECT: clean
"""A closure that counts."""

import threading


def make_button():
    clicks = 0
    lock = threading.Lock()

    def click():
        nonlocal clicks
        with lock:
            clicks += 1
            return clicks

    return click


button = make_button()


def press(times):
    for _ in range(times):
        button()


fingers = [threading.Thread(target=press, args=(5,)) for _ in range(2)]
for finger in fingers:
    finger.start()
for finger in fingers:
    finger.join()
print("pressed", button() > 5)
