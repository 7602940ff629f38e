# EXPECT: unsynchronised read/write | Cell.value | 22, 27
"""Spreadsheet: the user edits inputs while sums are recalculated."""
import threading


class Cell:
    def __init__(self, value=0):
        self.value = value


class Sheet:
    def __init__(self):
        self.cells = {}

    def cell(self, name):
        return self.cells[name]

    def create(self, name, value=0):
        self.cells[name] = Cell(value)

    def enter(self, name, value):
        self.cell(name).value = value

    def total(self, names):
        result = 0
        for name in names:
            result += self.cell(name).value
        return result


class Recalculator:
    def __init__(self, sheet, ranges):
        self.sheet = sheet
        self.ranges = ranges
        self.rounds = 0
        self.totals = {}

    def run(self):
        for _ in range(5):
            for label, names in self.ranges.items():
                self.totals[label] = self.sheet.total(names)
            self.rounds += 1


def user(sheet):
    for number in range(10):
        sheet.enter("A1", number)
        sheet.enter("A2", number * 2)


def main():
    sheet = Sheet()
    for name in ("A1", "A2", "B1", "B2"):
        sheet.create(name, 1)
    recalculator = Recalculator(sheet, {"A": ["A1", "A2"], "B": ["B1", "B2"]})
    threads = [
        threading.Thread(target=recalculator.run),
        threading.Thread(target=user, args=(sheet,)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(recalculator.rounds, recalculator.totals["B"], sheet.cell("A2").value)


main()
