# EXPECT: iteration during change | *recent* | 11, 14
import threading
from collections import deque


class Recent:
    def __init__(self):
        self.recent = deque(maxlen=30)

    def note(self, url):
        self.recent.append(url)

    def hosts(self):
        return {url.split("/")[0] for url in self.recent}


def browse(history):
    for n in range(20):
        history.note(f"host{n}/index")


def summarise(history):
    for _ in range(10):
        try:
            history.hosts()
        except RuntimeError:
            pass


history = Recent()
threads = [threading.Thread(target=f, args=(history,)) for f in (browse, summarise)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(history.hosts()))
