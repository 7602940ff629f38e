# EXPECT: lost update | Totals.sent | 17, 17
"""The raced attribute belongs to an object inside another."""

import threading


class Totals:
    def __init__(self):
        self.sent = 0


class Channel:
    def __init__(self):
        self.totals = Totals()

    def send(self, message):
        self.totals.sent += len(message)


channel = Channel()
senders = [threading.Thread(target=channel.send, args=(text,)) for text in ("hello", "goodbye")]
for sender in senders:
    sender.start()
for sender in senders:
    sender.join()
print("sent:", channel.totals.sent > 0)
