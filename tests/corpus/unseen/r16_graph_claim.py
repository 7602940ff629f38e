# EXPECT: check-then-act | *owner* | 21, 23
"""Two explorers divide a graph among themselves; who comes first owns a node."""
import threading

GRAPH = {
    "a": ["hub", "c"],
    "b": ["hub", "d"],
    "c": ["e"],
    "d": ["e"],
    "e": [],
    "hub": ["c", "d"],
}


class Territory:
    def __init__(self, graph):
        self.graph = graph
        self.owner = {}

    def claim(self, node, who):
        if node in self.owner:
            return False
        self.owner[node] = who
        return True


class Explorer:
    def __init__(self, name, territory, start):
        self.name = name
        self.territory = territory
        self.start = start
        self.mine = []

    def run(self):
        stack = [self.start]
        while stack:
            node = stack.pop()
            if self.territory.claim(node, self.name):
                self.mine.append(node)
                stack.extend(self.territory.graph[node])


def main():
    territory = Territory(GRAPH)
    explorers = [
        Explorer("north", territory, "a"),
        Explorer("south", territory, "b"),
    ]
    threads = [threading.Thread(target=x.run, name=x.name) for x in explorers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sorted(territory.owner))


if __name__ == "__main__":
    main()
