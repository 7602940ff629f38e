# EXPECT: clean
"""Breadth-first search by levels; a barrier action merges the new frontier."""
import threading

GRAPH = {
    0: [1, 2, 3],
    1: [4, 5],
    2: [5, 6],
    3: [6, 7],
    4: [8],
    5: [8, 9],
    6: [9],
    7: [9, 0],
    8: [],
    9: [1],
}


class LevelSearch:
    def __init__(self, graph, start, workers):
        self.graph = graph
        self.workers = workers
        self.level = {start: 0}
        self.frontier = [start]
        self.depth = 0
        self.found = [()] * workers
        self.barrier = threading.Barrier(workers, action=self.merge)

    def merge(self):
        self.depth += 1
        fresh = sorted(set().union(*self.found) - set(self.level))
        for node in fresh:
            self.level[node] = self.depth
        self.frontier = fresh

    def work(self, me):
        while self.frontier:
            mine = set()
            for node in self.frontier[me::self.workers]:
                mine.update(n for n in self.graph[node] if n not in self.level)
            self.found[me] = mine
            self.barrier.wait(5)

    def run(self):
        threads = [
            threading.Thread(target=self.work, args=(n,)) for n in range(self.workers)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return self.level


def main():
    print(sorted(LevelSearch(GRAPH, 0, 3).run().items()))


main()
