# EXPECT: lost update | *instances* | 10
import threading


class Counted:
    instances = 0

    def __init__(self, *args):
        super().__init__(*args)
        Counted.instances += 1


class Named:
    def __init__(self, name):
        self.name = name


class Widget(Counted, Named):
    pass


def build(prefix, out):
    for n in range(4):
        out.append(Widget(f"{prefix}{n}"))


left, right = [], []
threads = [
    threading.Thread(target=build, args=("l", left)),
    threading.Thread(target=build, args=("r", right)),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print([w.name for w in left + right])
