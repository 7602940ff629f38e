# EXPECT: clean
import threading
import weakref


class Image:
    def __init__(self, name):
        self.name = name
        self.pixels = [0] * 8


class Images:
    def __init__(self):
        self._lock = threading.Lock()
        self._live = weakref.WeakValueDictionary()
        self.loads = 0

    def get(self, name):
        with self._lock:
            image = self._live.get(name)
            if image is None:
                image = self._live[name] = Image(name)
                self.loads += 1
            return image


def viewer(images, names, out):
    for name in names:
        out.append(images.get(name))


images = Images()
outs = [[], [], []]
orders = ["abc", "cab", "bca"]
threads = [
    threading.Thread(target=viewer, args=(images, names, out))
    for names, out in zip(orders, outs)
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(images.loads, len({id(i) for out in outs for i in out}))
