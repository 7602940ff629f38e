# EXPECT: check-then-act | Link.socket | 17, 21, 22, 25, 27
# EXPECT: check-then-act | Link.error | 18, 30
"""One thread tests an attribute and then uses it, another stores None meanwhile."""

import threading


class Link:
    def __init__(self):
        self.socket = None
        self.error = None

    def open(self):
        self.socket, self.error = ["socket"], ValueError("old")

    def close(self):
        self.socket = None
        self.error = None

    def send(self):
        if self.socket is not None:
            self.socket.append("sent")

    def check(self):
        if self.socket is None:
            return 0
        return len(self.socket)

    def complain(self):
        return "none" if not self.error else self.error.args


link = Link()
link.open()
threads = [threading.Thread(target=target) for target in (link.close, link.send, link.check, link.complain)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(link.socket)
