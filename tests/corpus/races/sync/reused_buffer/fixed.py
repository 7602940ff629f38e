# EXPECT: clean
"""One list is filled again for each message."""

import queue
import threading

channel = queue.SimpleQueue()


def send(values):
    for value in values:
        message = [value]
        channel.put(message)
    channel.put(None)


def receive(sizes):
    while (message := channel.get()) is not None:
        sizes.append(message[0] > 0)


received = []
sender = threading.Thread(target=send, args=([1, 2, 3],))
receiver = threading.Thread(target=receive, args=(received,))
sender.start()
receiver.start()
sender.join()
receiver.join()
print(received)
