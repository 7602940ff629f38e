# EXPECT: clean
import threading


class Buffer:
    def __init__(self, size):
        lock = threading.Lock()
        self.items = []
        self.size = size
        self.not_full = threading.Condition(lock)
        self.not_empty = threading.Condition(lock)

    def put(self, item):
        with self.not_full:
            self.not_full.wait_for(lambda: len(self.items) < self.size)
            self.items.append(item)
            self.not_empty.notify()

    def get(self):
        with self.not_empty:
            self.not_empty.wait_for(lambda: self.items)
            item = self.items.pop(0)
            self.not_full.notify()
            return item


def produce(buffer):
    for n in range(10):
        buffer.put({"n": n})
    buffer.put(None)


buffer = Buffer(2)
thread = threading.Thread(target=produce, args=(buffer,))
thread.start()
total = 0
while (item := buffer.get()) is not None:
    item["n"] *= 2
    total += item["n"]
thread.join()
print(total)
