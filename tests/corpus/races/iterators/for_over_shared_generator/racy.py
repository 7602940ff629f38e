# EXPECT: unsynchronised read/write or lost update or iteration during change | *pages* | 16, 16
"""Two workers share one generator of pages in their for loops."""

import threading


def all_pages(book):
    for number, text in enumerate(book):
        yield number, text.upper()


pages = all_pages(["once", "upon", "a", "time"])


def read(out):
    for number, text in pages:
        out.append((number, text))


readers_pages = [[], []]
readers = [threading.Thread(target=read, args=(out,)) for out in readers_pages]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
print("read")
