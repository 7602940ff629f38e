# EXPECT: clean
"""A timer's function and the main thread share a variable."""

import threading

alarm = "silent"


def ring():
    global alarm
    alarm = "ringing"


timer = threading.Timer(0.01, ring)
timer.start()
timer.join()
state = alarm
print(state in {"silent", "ringing"})
