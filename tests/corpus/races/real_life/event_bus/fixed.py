# EXPECT: clean
"""Subscribers come while an event is delivered."""

import threading


class EventBus:
    def __init__(self):
        self._subscribers = {"saved": [len]}
        self._lock = threading.Lock()

    def subscribe(self, topic, function):
        with self._lock:
            self._subscribers[topic].append(function)

    def publish(self, topic, event):
        with self._lock:
            functions = tuple(self._subscribers[topic])
        for function in functions:
            function(event)


bus = EventBus()
subscriber = threading.Thread(target=bus.subscribe, args=("saved", str.upper))
publisher = threading.Thread(target=bus.publish, args=("saved", "file.txt"))
subscriber.start()
publisher.start()
subscriber.join()
publisher.join()
print("delivered")
