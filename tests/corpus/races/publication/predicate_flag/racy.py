# EXPECT: unsynchronised read/write | Channel.state | 16, 19
"""A state with more values than on and off, stored by one thread and returned to another."""

import threading


class Channel:
    def __init__(self, others):
        self.state = "new"
        self.others = others

    def is_over(self):
        return all(other.get() for other in self.others)

    def close(self):
        self.state = "closed"

    def get(self):
        return self.state


channels = [Channel(()), Channel(())]
group = Channel(channels)
threads = [threading.Thread(target=channels[0].close), threading.Thread(target=group.is_over)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(channels[0].state)
