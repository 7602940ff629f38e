# EXPECT: lost update or unsynchronised read/write | Bus.handlers | 13, 16
"""Handlers in a tuple that is replaced, never changed; writers need the lock, readers do not."""

import threading


class Bus:
    def __init__(self):
        self.handlers = ()
        self.lock = threading.Lock()

    def subscribe(self, handler):
        self.handlers = (*self.handlers, handler)

    def publish(self, event):
        for handler in self.handlers:
            handler(event)


bus = Bus()
subscribers = [threading.Thread(target=bus.subscribe, args=(handler,)) for handler in (len, str)]
publisher = threading.Thread(target=bus.publish, args=("started",))
for thread in (*subscribers, publisher):
    thread.start()
for thread in (*subscribers, publisher):
    thread.join()
print("subscribed", len(bus.handlers) > 0)
