# EXPECT: unsynchronised read/write | Recorder.out | 13, 13
"""`with ... as self.out`: the target is shared by every call."""

import io
import threading


class Recorder:
    def __init__(self):
        self.out = None

    def record(self, text):
        with io.StringIO() as self.out:
            return len(text)


recorder = Recorder()
lengths = [0, 0]


def record(index, text):
    lengths[index] = recorder.record(text)


threads = [threading.Thread(target=record, args=(index, text)) for index, text in enumerate(["one", "three"])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(lengths)
