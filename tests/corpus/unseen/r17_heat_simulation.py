# EXPECT: unsynchronised read/write | *cells* | 15
"""One-dimensional heat flow, halves of the rod computed by two threads."""
import threading


class Rod:
    def __init__(self, length, left, right):
        self.cells = [0.0] * length
        self.cells[0] = left
        self.cells[-1] = right

    def relax(self, low, high):
        cells = self.cells
        for i in range(low, high):
            cells[i] = (cells[i - 1] + cells[i + 1]) / 2


class Solver:
    def __init__(self, rod, steps):
        self.rod = rod
        self.steps = steps

    def half(self, low, high):
        for _ in range(self.steps):
            self.rod.relax(low, high)

    def run(self):
        length = len(self.rod.cells)
        middle = length // 2
        threads = [
            threading.Thread(target=self.half, args=(1, middle)),
            threading.Thread(target=self.half, args=(middle, length - 1)),
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def main():
    rod = Rod(12, 100.0, 0.0)
    Solver(rod, 5).run()
    print(rod.cells[0], rod.cells[-1], len(rod.cells))
    print(all(0.0 <= value <= 100.0 for value in rod.cells))


if __name__ == "__main__":
    main()
