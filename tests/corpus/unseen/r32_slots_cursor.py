# EXPECT: lost update | Cursor.pos | 13, 14
import threading


class Cursor:
    __slots__ = ("data", "pos")

    def __init__(self, data):
        self.data = data
        self.pos = 0

    def take(self):
        here = self.pos
        self.pos = here + 1
        return self.data[here]


def reader(cursor, out):
    for _ in range(3):
        out.append(cursor.take())


cursor = Cursor("abcdefghij")
outs = [], []
threads = [threading.Thread(target=reader, args=(cursor, out)) for out in outs]
for t in threads:
    t.start()
for t in threads:
    t.join()
print([len(out) for out in outs])
