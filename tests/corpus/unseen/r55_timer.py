# EXPECT: lost update | Meter.beats | 11
import threading


class Meter:
    def __init__(self):
        self.beats = 0

    def beat(self, count=1):
        for _ in range(count):
            self.beats += 1


meter = Meter()
timer = threading.Timer(0.005, meter.beat, args=(3,))
timer.start()
for _ in range(5):
    meter.beat()
timer.join()
print(timer.finished.is_set())
