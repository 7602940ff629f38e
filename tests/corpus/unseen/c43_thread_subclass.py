# EXPECT: clean
import threading


class Summer(threading.Thread):
    total = 0

    def __init__(self, numbers):
        super().__init__(daemon=True)
        self.numbers = numbers

    def run(self):
        for n in self.numbers:
            self.total += n

    def join(self, timeout=None):
        super().join(timeout)
        return self.total


class Doubler(Summer):
    def run(self):
        super().run()
        self.total *= 2


threads = [Summer(range(5)), Doubler(range(5)), Doubler([100])]
for t in threads:
    t.start()
print([t.join() for t in threads], Summer.total)
