# EXPECT: lost update | *result* | 27
"""Matrix product, split along the inner dimension."""
import threading


def zeros(rows, columns):
    return [[0] * columns for _ in range(rows)]


def sequential(a, b):
    return [
        [sum(x * y for x, y in zip(row, column)) for column in zip(*b)]
        for row in a
    ]


class Product:
    def __init__(self, a, b):
        self.a = a
        self.b = b
        self.result = zeros(len(a), len(b[0]))

    def partial(self, inner):
        for i, row in enumerate(self.a):
            for j in range(len(self.b[0])):
                for k in inner:
                    self.result[i][j] += row[k] * self.b[k][j]

    def compute(self, parts):
        size = len(self.b)
        step = size // parts
        threads = []
        for start in range(0, size, step):
            inner = range(start, min(start + step, size))
            threads.append(threading.Thread(target=self.partial, args=(inner,)))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return self.result


def main():
    a = [[1, 2, 3, 4], [5, 6, 7, 8]]
    b = [[1, 0], [0, 1], [2, 1], [1, 2]]
    product = Product(a, b).compute(2)
    print(len(product), len(product[0]), sequential(a, b))


main()
