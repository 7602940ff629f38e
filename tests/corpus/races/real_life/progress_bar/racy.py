# EXPECT: lost update | ProgressBar.done | 14, 15
"""A progress bar that several downloads advance."""

import threading


class ProgressBar:
    def __init__(self, total):
        self.total = total
        self.done = 0
        self._lock = threading.Lock()

    def advance(self, amount=1):
        self.done = min(self.done + amount, self.total)
        if self.done == self.total:
            self.finish()

    def finish(self):
        self.label = "complete"


bar = ProgressBar(1_000)


def download(chunks):
    for chunk in chunks:
        bar.advance(len(chunk))


downloads = [threading.Thread(target=download, args=([b"ab", b"cde"],)) for _ in range(2)]
for each in downloads:
    each.start()
for each in downloads:
    each.join()
print("downloaded", bar.done > 0)
