# EXPECT: unsynchronised read/write | Download.data | 14, 18
"""The event is set before what it announces is there."""

import threading


class Download:
    def __init__(self):
        self.data = None
        self.ready = threading.Event()

    def run(self):
        self.ready.set()
        self.data = b"payload"

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
