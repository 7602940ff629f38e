# EXPECT: unsynchronised read/write or torn multi-step write | Range.low | 14, 17
# EXPECT: unsynchronised read/write or torn multi-step write | Range.high | 14, 17
"""`a.low = a.high = value` stores twice."""

import threading


class Range:
    def __init__(self):
        self.low = 0
        self.high = 0

    def collapse(self, value):
        self.low = self.high = value

    def span(self):
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
