# EXPECT: clean
import threading


class Latch:
    def __init__(self, count):
        self._zero = threading.Condition()
        self._count = count

    def down(self):
        with self._zero:
            self._count -= 1
            if self._count <= 0:
                self._zero.notify_all()

    def wait(self):
        with self._zero:
            while self._count > 0:
                self._zero.wait()


latch = Latch(3)
cells = [0, 0, 0]


def work(i):
    cells[i] = 10 * i
    cells[i] += 1
    latch.down()


for i in range(3):
    threading.Thread(target=work, args=(i,)).start()
latch.wait()
print(sum(cells), cells)
