# EXPECT: unsynchronised read/write | global alarm in racy.py | 11, 16
"""A timer's function and the main thread share a variable."""

import threading

alarm = "silent"


def ring():
    global alarm
    alarm = "ringing"


timer = threading.Timer(0.01, ring)
timer.start()
state = alarm
timer.join()
print(state in {"silent", "ringing"})
