# EXPECT: clean
"""A seat is booked when it is free."""

import threading

seats = {"1A": None, "1B": None}
counter = threading.Lock()


def book(seat, passenger):
    with counter:
        if seats[seat] is None:
            seats[seat] = passenger


agents = [threading.Thread(target=book, args=("1A", name)) for name in ("ann", "ben")]
for agent in agents:
    agent.start()
for agent in agents:
    agent.join()
print("booked:", seats["1A"] is not None, "free:", seats["1B"] is None)
