# EXPECT: clean
"""Heat flow with two buffers; they are exchanged while all wait."""
import threading


class Rod:
    def __init__(self, length, left):
        self.now = [0.0] * length
        self.now[0] = left
        self.after = list(self.now)

    def exchange(self):
        self.now, self.after = self.after, self.now

    def relax(self, low, high):
        now, after = self.now, self.after
        for i in range(low, high):
            after[i] = (now[i - 1] + now[i] + now[i + 1]) / 3


class Solver:
    def __init__(self, rod, parts, steps):
        self.rod = rod
        self.steps = steps
        inner = len(rod.now) - 2
        self.bounds = [1 + inner * p // parts for p in range(parts + 1)]
        self.step_done = threading.Barrier(parts, action=rod.exchange)

    def part(self, low, high):
        for _ in range(self.steps):
            self.rod.relax(low, high)
            self.step_done.wait(5)

    def run(self):
        threads = [
            threading.Thread(target=self.part, args=pair)
            for pair in zip(self.bounds, self.bounds[1:])
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def main():
    rod = Rod(14, 81.0)
    Solver(rod, parts=3, steps=4).run()
    print([round(value, 3) for value in rod.now])


main()
