# EXPECT: clean
"""Ids from itertools.count; every importer keeps its own results."""
import itertools
import threading


class IdAllocator:
    def __init__(self, prefix):
        self.prefix = prefix
        self._numbers = itertools.count(1)

    def allocate(self):
        return "%s-%04d" % (self.prefix, next(self._numbers))


class Entity:
    def __init__(self, ident, payload):
        self.ident = ident
        self.payload = payload


class Importer(threading.Thread):
    def __init__(self, allocator, catalogue, rows):
        super().__init__()
        self.allocator = allocator
        self.catalogue = catalogue
        self.rows = rows
        self.entities = []

    def run(self):
        for row in self.rows:
            entity = Entity(self.allocator.allocate(), row)
            self.entities.append(entity)
            self.catalogue[entity.ident] = entity


def main():
    allocator = IdAllocator("inv")
    catalogue = {}
    importers = [
        Importer(allocator, catalogue, ["pen", "ink", "cap"]),
        Importer(allocator, catalogue, ["cup", "mug", "jar"]),
        Importer(allocator, catalogue, ["key", "rod"]),
    ]
    for i in importers:
        i.start()
    for i in importers:
        i.join()
    print(sorted(catalogue))
    print([[e.payload for e in i.entities] for i in importers])


main()
