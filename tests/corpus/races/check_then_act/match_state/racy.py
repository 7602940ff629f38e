# EXPECT: check-then-act | Elevator.state | 12, 14
"""A state machine driven by match."""

import threading


class Elevator:
    def __init__(self):
        self.state = "idle"

    def call(self):
        match self.state:
            case "idle":
                self.state = "moving"
                return True
            case _:
                return False


elevator = Elevator()
came = []
floors = [threading.Thread(target=lambda: came.append(elevator.call())) for _ in range(2)]
for floor in floors:
    floor.start()
for floor in floors:
    floor.join()
print(elevator.state, True in came)
