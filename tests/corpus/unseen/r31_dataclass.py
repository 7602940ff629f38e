# EXPECT: lost update | Stats.hits | 13
import threading
from dataclasses import dataclass, field


@dataclass
class Stats:
    name: str
    hits: int = 0
    tags: list = field(default_factory=list)

    def hit(self, tag):
        self.hits = self.hits + 1
        self.tags.append(tag)


def visit(stats, tag):
    for _ in range(4):
        stats.hit(tag)


stats = Stats("home")
a = threading.Thread(target=visit, args=(stats, "a"))
b = threading.Thread(target=visit, args=(stats, "b"))
a.start()
b.start()
a.join()
b.join()
print(stats.name, sorted(stats.tags))
