# EXPECT: clean
"""The event is set before what it announces is there."""

import threading


class Download:
    def __init__(self):
        self.data = None
        self.ready = threading.Event()

    def run(self):
        self.data = b"payload"
        self.ready.set()

    def length(self):
        self.ready.wait()
        return len(self.data or b"")


download = Download()
lengths = []
reader = threading.Thread(target=lambda: lengths.append(download.length()))
reader.start()
threading.Thread(target=download.run).start()
reader.join()
print("read", len(lengths))
