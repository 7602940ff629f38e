# EXPECT: unsynchronised read/write or lost update | Window.events | 14, 17
"""Counting is locked, starting over is not."""

import threading


class Window:
    def __init__(self):
        self.events = 0
        self.lock = threading.Lock()

    def record(self):
        with self.lock:
            self.events += 1

    def reset(self):
        self.events = 0


window = Window()
recorder = threading.Thread(target=lambda: [window.record() for _ in range(5)])
resetter = threading.Thread(target=window.reset)
recorder.start()
resetter.start()
recorder.join()
resetter.join()
print("events", window.events <= 5)
