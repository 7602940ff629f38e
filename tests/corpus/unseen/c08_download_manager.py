# EXPECT: clean
"""Download manager: progress is added up by the main thread only."""
from concurrent.futures import ThreadPoolExecutor, as_completed


class Download:
    def __init__(self, name, size):
        self.name = name
        self.size = size
        self.received = 0
        self.pieces = []

    def fetch(self, step=16):
        while self.received < self.size:
            amount = min(step, self.size - self.received)
            self.pieces.append(bytes(amount))
            self.received += amount
        return self


class Progress:
    def __init__(self, total):
        self.total = total
        self.done = 0
        self.finished = []

    def account(self, download):
        self.done += download.received
        self.finished.append(download.name)

    @property
    def percent(self):
        return 100 * self.done // self.total


class Manager:
    def __init__(self, downloads):
        self.downloads = downloads
        self.progress = Progress(sum(d.size for d in downloads))

    def run(self, workers):
        with ThreadPoolExecutor(max_workers=workers) as pool:
            futures = {pool.submit(d.fetch): d for d in self.downloads}
            for future in as_completed(futures):
                download = future.result()
                assert download is futures[future]
                self.progress.account(download)
        return self.progress


def main():
    sizes = {"a.iso": 100, "b.iso": 33, "c.iso": 250, "d.iso": 1}
    manager = Manager([Download(name, size) for name, size in sizes.items()])
    progress = manager.run(workers=3)
    print(progress.percent, progress.done, sorted(progress.finished))
    print([len(d.pieces) for d in manager.downloads])


main()
