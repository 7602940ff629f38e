# EXPECT: iteration during change | *orders* | 10, 14
"""A list searched by enumerate while its head is taken."""

import threading

orders = ["tea", "coffee", "milk", "juice"]


def serve():
    orders.pop(0)


def position(wanted, out):
    for index, order in enumerate(orders):
        if order == wanted:
            out.append(index)


found = []
serving = threading.Thread(target=serve)
searching = threading.Thread(target=position, args=("juice", found))
serving.start()
searching.start()
serving.join()
searching.join()
print(orders, len(found) <= 1)
