# EXPECT: clean
"""A guest looks for the dish; the repair waits on the condition until it is there."""

import threading


class Kitchen:
    def __init__(self):
        self.dish = None
        self.served = threading.Condition()

    def cook(self, name):
        with self.served:
            self.dish = name
            self.served.notify_all()

    def eat(self):
        with self.served:
            self.served.wait_for(lambda: self.dish is not None)
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
