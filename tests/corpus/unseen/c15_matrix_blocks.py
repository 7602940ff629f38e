# EXPECT: clean
"""Matrix product: every task computes its own rows of a shared result."""
from concurrent.futures import ThreadPoolExecutor


class Matrix:
    def __init__(self, rows):
        self.rows = [list(row) for row in rows]

    @classmethod
    def zeros(cls, height, width):
        return cls([[0] * width for _ in range(height)])

    @property
    def shape(self):
        return len(self.rows), len(self.rows[0])

    def column(self, j):
        return [row[j] for row in self.rows]


def block_product(a, b, result, low, high):
    work = 0
    for i in range(low, high):
        for j in range(b.shape[1]):
            for x, y in zip(a.rows[i], b.column(j)):
                result.rows[i][j] += x * y
                work += 1
    return work


def product(a, b, parts):
    height = a.shape[0]
    result = Matrix.zeros(height, b.shape[1])
    bounds = [height * p // parts for p in range(parts + 1)]
    with ThreadPoolExecutor(max_workers=parts) as pool:
        work = pool.map(
            lambda lh: block_product(a, b, result, *lh), zip(bounds, bounds[1:])
        )
        return result, sum(work)


def main():
    a = Matrix([[i + j for j in range(4)] for i in range(6)])
    b = Matrix([[i * j for j in range(3)] for i in range(4)])
    result, work = product(a, b, 3)
    for row in result.rows:
        print(row)
    print(work)


main()
