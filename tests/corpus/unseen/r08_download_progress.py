# EXPECT: lost update | DownloadManager.done_bytes | 29
"""Download manager; each download guards its progress by its own lock."""
import threading


class Download:
    def __init__(self, url, size):
        self.url = url
        self.size = size
        self.received = 0
        self.lock = threading.Lock()

    def chunks(self, step=10):
        for start in range(0, self.size, step):
            yield b"x" * min(step, self.size - start)


class DownloadManager:
    def __init__(self):
        self.downloads = []
        self.done_bytes = 0

    def add(self, url, size):
        self.downloads.append(Download(url, size))

    def _progress(self, download, amount):
        with download.lock:
            download.received += amount
            self.done_bytes += amount

    def _fetch(self, download):
        for chunk in download.chunks():
            self._progress(download, len(chunk))

    def run(self):
        threads = [
            threading.Thread(target=self._fetch, args=(d,), name=d.url)
            for d in self.downloads
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def main():
    manager = DownloadManager()
    manager.add("mirror/a.iso", 105)
    manager.add("mirror/b.iso", 70)
    manager.add("mirror/c.iso", 33)
    manager.run()
    for d in manager.downloads:
        print(d.url, d.received, "of", d.size)


main()
