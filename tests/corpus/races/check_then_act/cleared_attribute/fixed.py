# EXPECT: clean
# EXPECT-NOTE: what is tested is what is used | Link.socket | 18, 22, 27
# EXPECT-NOTE: what is tested is what is used | Link.error | 19, 33
"""One thread reads an attribute once, tests and uses what it has read; another stores None meanwhile."""

import threading


class Link:
    def __init__(self):
        self.socket = None
        self.error = None

    def open(self):
        self.socket, self.error = ("socket",), ValueError("old")

    def close(self):
        self.socket = None
        self.error = None

    def send(self):
        socket = self.socket
        if socket is not None:
            len(socket)

    def check(self):
        socket = self.socket
        if socket is None:
            return 0
        return len(socket)

    def complain(self):
        error = self.error
        return "none" if not error else error.args


link = Link()
link.open()
threads = [threading.Thread(target=target) for target in (link.close, link.send, link.check, link.complain)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(link.socket)
