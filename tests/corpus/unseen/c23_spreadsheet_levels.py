# EXPECT: clean
"""Spreadsheet recalculated level by level with futures."""
from concurrent.futures import ThreadPoolExecutor, wait
from graphlib import TopologicalSorter


class Cell:
    def __init__(self, name, inputs, formula):
        self.name = name
        self.inputs = inputs
        self.formula = formula
        self.value = None


class Sheet:
    def __init__(self):
        self.cells = {}

    def constant(self, name, value):
        self.cells[name] = Cell(name, (), lambda: value)

    def define(self, name, inputs, formula):
        self.cells[name] = Cell(name, inputs, formula)

    def evaluate(self, name):
        cell = self.cells[name]
        cell.value = cell.formula(*(self.cells[i].value for i in cell.inputs))

    def recalculate(self, pool):
        order = TopologicalSorter({n: c.inputs for n, c in self.cells.items()})
        order.prepare()
        levels = 0
        while order.is_active():
            ready = order.get_ready()
            wait([pool.submit(self.evaluate, name) for name in ready])
            order.done(*ready)
            levels += 1
        return levels


def main():
    sheet = Sheet()
    for n in range(1, 5):
        sheet.constant("A%d" % n, n)
    sheet.define("B1", ("A1", "A2"), lambda x, y: x + y)
    sheet.define("B2", ("A3", "A4"), lambda x, y: x * y)
    sheet.define("C1", ("B1", "B2"), max)
    sheet.define("C2", ("B1", "A1"), lambda x, y: x - y)
    with ThreadPoolExecutor(max_workers=3) as pool:
        print(sheet.recalculate(pool))
        sheet.constant("A3", 30)
        print(sheet.recalculate(pool))
    print({name: cell.value for name, cell in sheet.cells.items()})


main()
