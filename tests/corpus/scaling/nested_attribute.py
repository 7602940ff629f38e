"""Every thread walks from one global to an object two attributes away."""


class Node:
    def __init__(self, child=None, weight=0.5):
        self.child = child
        self.weight = weight


ROOT = Node(Node(Node()))


def f():
    total = 0.0
    for _ in range(100):
        leaf = ROOT.child.child
        total += leaf.weight
    return total
