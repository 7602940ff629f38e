# EXPECT: check-then-act or lost update | Report._rows | 12, 13
"""`self.x = self.x or make()` in one line is still two steps."""

import threading


class Report:
    def __init__(self):
        self._rows = None

    def rows(self):
        self._rows = self._rows or [[n, n * n] for n in range(4)]
        return len(self._rows)


report = Report()
lengths = [0, 0]


def measure(index):
    lengths[index] = report.rows()


readers = [threading.Thread(target=measure, args=(index,)) for index in range(2)]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
print(lengths)
