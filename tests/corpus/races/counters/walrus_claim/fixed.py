# EXPECT: clean
"""Tickets claimed by a walrus in the loop's test."""

import threading


class Dispenser:
    def __init__(self, tickets):
        self.tickets = tickets
        self.next_ticket = 0
        self.lock = threading.Lock()

    def claim_all(self, mine):
        while True:
            with self.lock:
                if (ticket := self.next_ticket) >= self.tickets:
                    return
                self.next_ticket = ticket + 1
            mine.append(ticket)


dispenser = Dispenser(30)
claimed = [[], []]
clerks = [threading.Thread(target=dispenser.claim_all, args=(mine,)) for mine in claimed]
for clerk in clerks:
    clerk.start()
for clerk in clerks:
    clerk.join()
print("all tickets gone:", len(claimed[0]) + len(claimed[1]) >= 30)
