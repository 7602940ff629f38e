# EXPECT: clean
"""`a.low = a.high = value` stores twice."""

import threading


class Range:
    def __init__(self):
        self.low = 0
        self.high = 0
        self.lock = threading.Lock()

    def collapse(self, value):
        with self.lock:
            self.low = self.high = value

    def span(self):
        with self.lock:
            return self.high - self.low


limits = Range()
spans = []
collapsing = threading.Thread(target=limits.collapse, args=(5,))
asking = threading.Thread(target=lambda: spans.append(limits.span()))
collapsing.start()
asking.start()
collapsing.join()
asking.join()
print(limits.span(), len(spans))
