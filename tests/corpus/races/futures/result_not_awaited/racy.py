# EXPECT: unsynchronised read/write | Report.rows | 12, 19
"""A task fills an object that is read without asking for its result."""

from concurrent.futures import ThreadPoolExecutor


class Report:
    def __init__(self):
        self.rows = 0

    def fill(self, numbers):
        self.rows = len(numbers)
        return self


report = Report()
with ThreadPoolExecutor(max_workers=1) as executor:
    future = executor.submit(report.fill, [1, 2, 3])
    rows = report.rows
print(rows in (0, 3), report.rows)
