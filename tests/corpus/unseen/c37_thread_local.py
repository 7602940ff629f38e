# EXPECT: clean
import threading


class Local(threading.local):
    depth = 0

    def __init__(self):
        self.trail = []


context = Local()


def walk(tree):
    context.depth += 1
    context.trail.append((context.depth, tree[0]))
    for child in tree[1:]:
        walk(child)
    context.depth -= 1


def start(tree, out):
    walk(tree)
    out.append(context.trail)


trees = [("a", ("b", ("c",)), ("d",)), ("x", ("y",))]
outs = [[], []]
threads = [threading.Thread(target=start, args=pair) for pair in zip(trees, outs)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(outs, context.depth)
