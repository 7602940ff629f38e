# EXPECT: unsynchronised read/write | *['state'] | 14, 20
"""A producer goes on writing to what it has put into the queue."""

import queue
import threading

orders = queue.Queue()


def produce():
    for number in range(3):
        order = {"number": number, "state": "new"}
        orders.put(order)
        order["state"] = "sent"
    orders.put(None)


def consume(seen):
    while (order := orders.get()) is not None:
        seen.append((order["number"], order["state"] in {"new", "sent"}))


states = []
producer = threading.Thread(target=produce)
consumer = threading.Thread(target=consume, args=(states,))
producer.start()
consumer.start()
producer.join()
consumer.join()
print(states)
