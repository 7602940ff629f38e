# EXPECT: lost update | IdAllocator.next_id | 15, 18
"""Allocates ids for entities of several kinds."""
import threading


class IdAllocator:
    def __init__(self, prefix, first=1):
        self.prefix = prefix
        self.next_id = first
        self.lock = threading.Lock()

    def allocate(self):
        self.lock.acquire()
        try:
            number = self.next_id
        finally:
            self.lock.release()
        self.next_id = number + 1
        return "%s-%04d" % (self.prefix, number)


class Entity:
    def __init__(self, ident, payload):
        self.ident = ident
        self.payload = payload


class Importer:
    def __init__(self, allocator, rows):
        self.allocator = allocator
        self.rows = rows
        self.entities = []

    def run(self):
        for row in self.rows:
            ident = self.allocator.allocate()
            self.entities.append(Entity(ident, row))


def main():
    allocator = IdAllocator("inv")
    importers = [
        Importer(allocator, ["pen", "ink", "cap"]),
        Importer(allocator, ["cup", "mug", "jar"]),
    ]
    threads = [threading.Thread(target=i.run) for i in importers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for importer in importers:
        print([e.payload for e in importer.entities])


main()
