# EXPECT: clean
"""Threads started inside a function share its local variable."""

import threading


def sum_in_parallel(chunks):
    total = 0
    adding = threading.Lock()

    def add(chunk):
        nonlocal total
        subtotal = sum(chunk)
        with adding:
            total = total + subtotal

    threads = [threading.Thread(target=add, args=(chunk,)) for chunk in chunks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total


print("summed:", sum_in_parallel([[1, 2, 3], [4, 5, 6]]) > 0)
