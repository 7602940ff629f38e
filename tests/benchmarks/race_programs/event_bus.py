"""An event bus: publishers in threads, subscribers with locks of their own, a dispatcher with a queue."""

import queue
import threading
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    topic: str
    source: int
    amount: int


class Bus:
    def __init__(self):
        self.handlers = {}
        self.lock = threading.Lock()
        self.inbox = queue.SimpleQueue()
        self.dispatched = 0

    def subscribe(self, topic, handler):
        with self.lock:
            self.handlers.setdefault(topic, []).append(handler)

    def publish(self, event):
        with self.lock:
            handlers = list(self.handlers.get(event.topic, ()))
        for handler in handlers:
            handler(event)

    def post(self, event):
        self.inbox.put(event)

    def dispatch(self):
        while (event := self.inbox.get()) is not None:
            self.publish(event)
            self.dispatched += 1


class Ledger:
    """Adds up amounts by source."""

    def __init__(self):
        self.totals = Counter()
        self.lock = threading.Lock()

    def __call__(self, event):
        with self.lock:
            self.totals[event.source] += event.amount


class Largest:
    """Remembers the largest amount of a topic."""

    def __init__(self):
        self.amounts = {}
        self._lock = threading.RLock()

    def __call__(self, event):
        with self._lock:
            if event.amount > self.amounts.get(event.topic, 0):
                self.amounts[event.topic] = event.amount


class History:
    def __init__(self, length):
        self.lines = [""] * length
        self.position = 0
        self.lock = threading.Lock()

    def __call__(self, event):
        line = f"{event.topic}:{event.source}:{event.amount:06}"
        with self.lock:
            self.lines[self.position % len(self.lines)] = line
            self.position += 1


def trade(bus, source, events):
    state = source + 1
    for number in range(events):
        state = (state * 48_271) % 2_147_483_647
        event = Event(("bought", "sold", "cancelled")[state % 3], source, state % 1_000)
        if number % 4:
            bus.publish(event)
        else:
            bus.post(event)


def main():
    bus, ledger, largest, history = Bus(), Ledger(), Largest(), History(64)
    for topic in ("bought", "sold"):
        bus.subscribe(topic, ledger)
        bus.subscribe(topic, largest)
    bus.subscribe("cancelled", history)
    dispatcher = threading.Thread(target=bus.dispatch, name="dispatcher")
    traders = [
        threading.Thread(target=trade, args=(bus, source, 8_000), name=f"trader-{source}") for source in range(4)
    ]
    for thread in (dispatcher, *traders):
        thread.start()
    for trader in traders:
        trader.join()
    bus.post(None)
    dispatcher.join()
    print("checksum", sorted(ledger.totals.items()), sorted(largest.amounts.items()), history.position, bus.dispatched)


if __name__ == "__main__":
    main()
