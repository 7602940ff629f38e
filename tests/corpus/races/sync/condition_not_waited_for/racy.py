# EXPECT: unsynchronised read/write | Kitchen.dish | 13, 16
"""A guest looks for the dish; the repair waits on the condition until it is there."""

import threading


class Kitchen:
    def __init__(self):
        self.dish = None
        self.served = threading.Condition()

    def cook(self, name):
        self.dish = name

    def eat(self):
        return self.dish


kitchen = Kitchen()
eaten = []
guests = [threading.Thread(target=lambda: eaten.append(kitchen.eat())) for _ in range(2)]
for guest in guests:
    guest.start()
cook = threading.Thread(target=kitchen.cook, args=("soup",))
cook.start()
for thread in (*guests, cook):
    thread.join()
print(kitchen.dish, len(eaten))
