# EXPECT: unsynchronised read/write | *result* | 14, 19
import threading


class Calculation:
    def __init__(self, n):
        self.n = n
        self.result = 0
        self.ready = threading.Event()

    def run(self):
        value = sum(range(self.n))
        self.ready.set()
        self.result = value


def consumer(calculation, out):
    calculation.ready.wait()
    value = calculation.result
    out.append(value >= 0)


calculation = Calculation(100)
out = []
threads = [
    threading.Thread(target=calculation.run),
    threading.Thread(target=consumer, args=(calculation, out)),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(out, calculation.result)
