# EXPECT: lost update | *next_rank* | registry.py:11, registry.py:12
"""Loads plugins in threads; each plugin announces itself to the registry module."""
import threading

import registry


class CsvExporter:
    extension = "csv"

    def export(self, rows):
        return "\n".join(",".join(map(str, row)) for row in rows)


class TsvExporter:
    extension = "tsv"

    def export(self, rows):
        return "\n".join("\t".join(map(str, row)) for row in rows)


class ListExporter:
    extension = "lst"

    def export(self, rows):
        return str(rows)


def load(group):
    for cls in group:
        registry.announce(cls)


def main():
    groups = [[CsvExporter, ListExporter], [TsvExporter]]
    threads = [threading.Thread(target=load, args=(g,)) for g in groups]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(sorted(registry.plugins))
    print(registry.plugins["csv"].export([(1, 2), (3, 4)]))


if __name__ == "__main__":
    main()
