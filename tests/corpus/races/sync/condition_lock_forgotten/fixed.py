# EXPECT: clean
"""The state of a condition is changed outside its lock."""

import threading


class Mailbox:
    def __init__(self):
        self.letters = 0
        self.changed = threading.Condition()

    def deliver(self):
        with self.changed:
            self.letters += 1
            self.changed.notify()


mailbox = Mailbox()


def postman(letters):
    for _ in range(letters):
        mailbox.deliver()


postmen = [threading.Thread(target=postman, args=(3,)) for _ in range(2)]
for each in postmen:
    each.start()
for each in postmen:
    each.join()
print("delivered", mailbox.letters > 0)
