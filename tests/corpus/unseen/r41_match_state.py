# EXPECT: check-then-act or lost update | Light.state | 10, 12, 14, 16
import threading


class Light:
    def __init__(self):
        self.state = "red"

    def advance(self):
        match self.state:
            case "red":
                self.state = "green"
            case "green":
                self.state = "amber"
            case _:
                self.state = "red"


def drive(light, steps):
    for _ in range(steps):
        light.advance()


light = Light()
threads = [threading.Thread(target=drive, args=(light, n)) for n in (3, 6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(light.state in {"red", "green", "amber"})
