# EXPECT: clean
from multiprocessing.pool import ThreadPool


class Row:
    def __init__(self, n):
        self.n = n
        self.cells = []

    def fill(self):
        self.cells.extend(self.n * k for k in range(4))
        self.n += 100
        return sum(self.cells)


rows = [Row(n) for n in range(6)]
with ThreadPool(3) as pool:
    sums = pool.map(Row.fill, rows)
    extra = pool.apply_async(rows[0].fill)
    late = extra.get()
    rows[0].cells.append("end")
print(sums, late)
print([row.n for row in rows], rows[0].cells)
