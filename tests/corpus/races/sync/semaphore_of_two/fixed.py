# EXPECT: clean
"""A semaphore with two permits lets two in."""

import threading


class Printer:
    def __init__(self):
        self.pages = 0
        self.free = threading.BoundedSemaphore(1)

    def print_pages(self, count):
        with self.free:
            self.pages += count


printer = Printer()


def office(documents):
    for pages in documents:
        printer.print_pages(pages)


offices = [threading.Thread(target=office, args=([1, 2, 3],)) for _ in range(3)]
for each in offices:
    each.start()
for each in offices:
    each.join()
print("printed", printer.pages > 0)
