# EXPECT: lost update | *made* | 10
import threading


class Meta(type):
    made = 0

    def __call__(cls, *args, **kwargs):
        instance = super().__call__(*args, **kwargs)
        Meta.made = Meta.made + 1
        return instance


class Node(metaclass=Meta):
    def __init__(self, value):
        self.value = value


class Leaf(metaclass=Meta):
    def __init__(self, value):
        self.value = -value


def grow(kind, out):
    out.extend(kind(v).value for v in range(5))


nodes, leaves = [], []
jobs = [(Node, nodes), (Leaf, leaves)]
threads = [threading.Thread(target=grow, args=job) for job in jobs]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(nodes, leaves)
