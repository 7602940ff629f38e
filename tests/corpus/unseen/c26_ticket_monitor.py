# EXPECT: clean
"""Ticket shop as a monitor: buyers wait for seats which others give back."""
import threading


class Closed(Exception):
    pass


class TicketShop:
    def __init__(self, seats):
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._seats = list(range(seats))
        self._sold = 0
        self._closed = False

    def buy(self):
        with self._free:
            while not self._seats and not self._closed:
                self._free.wait()
            if self._closed:
                raise Closed
            self._sold += 1
            return self._seats.pop()

    def give_back(self, seat):
        with self._lock:
            self._seats.append(seat)
            self._free.notify()

    def close(self):
        with self._lock:
            self._closed = True
            self._free.notify_all()
            return self._sold


class Visitor(threading.Thread):
    def __init__(self, shop, visits):
        super().__init__()
        self.shop = shop
        self.visits = visits
        self.seats = []

    def run(self):
        for _ in range(self.visits):
            seat = self.shop.buy()
            self.seats.append(seat)
            self.shop.give_back(seat)


def main():
    shop = TicketShop(2)
    visitors = [Visitor(shop, 5) for _ in range(4)]
    for v in visitors:
        v.start()
    for v in visitors:
        v.join()
    print(shop.close(), sum(len(v.seats) for v in visitors))
    try:
        shop.buy()
    except Closed:
        print("closed")


main()
