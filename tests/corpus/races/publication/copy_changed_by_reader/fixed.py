# EXPECT-NOTE: copy on write | Log.lines | 13, 16
"""One thread puts a longer copy of the lines in place; the other only counts what it loaded."""

import threading


class Log:
    def __init__(self):
        self.lines = []
        self.shown = 0

    def write(self, line):
        self.lines = [*self.lines, line]

    def mark(self):
        lines = self.lines
        self.shown = len(lines)


log = Log()
writer = threading.Thread(target=lambda: [log.write(f"line {step}") for step in range(3)])
other = threading.Thread(target=lambda: [log.mark() for _ in range(3)])
for thread in (writer, other):
    thread.start()
for thread in (writer, other):
    thread.join()
print("logged", len(log.lines) > 0)
