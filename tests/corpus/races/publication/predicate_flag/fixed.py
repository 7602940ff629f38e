# EXPECT: clean
# EXPECT-NOTE: the predicate is one load | Channel.open | 15, 18, 21
"""Flags that predicates read: behind `not`, `and`, `any`."""

import threading


class Channel:
    def __init__(self, others):
        self.open = True
        self.paused = False
        self.others = others

    def is_over(self):
        return any(not other.open for other in self.others) or not (self.open or self.paused)

    def is_closed(self):
        return not self.open and not self.paused

    def close(self):
        self.open = False
        self.paused = False


channels = [Channel(()), Channel(())]
group = Channel(channels)
threads = [threading.Thread(target=target) for target in (channels[0].close, group.is_over, channels[0].is_closed)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(channels[0].open)
