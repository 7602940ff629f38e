# EXPECT: clean
"""Two workers share one generator of pages in their for loops."""

import queue
import threading


def all_pages(book):
    for number, text in enumerate(book):
        yield number, text.upper()


pages = queue.SimpleQueue()
for page in all_pages(["once", "upon", "a", "time"]):
    pages.put(page)


def read(out):
    while True:
        try:
            out.append(pages.get_nowait())
        except queue.Empty:
            return


readers_pages = [[], []]
readers = [threading.Thread(target=read, args=(out,)) for out in readers_pages]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
print("read")
