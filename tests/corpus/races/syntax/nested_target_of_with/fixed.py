# EXPECT: clean
"""`with ... as self.out`: the target is shared by every call."""

import io
import threading


class Recorder:
    def __init__(self):
        self.out = None

    def record(self, text):
        with io.StringIO() as out:
            out.write(text)
            return len(out.getvalue())


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
