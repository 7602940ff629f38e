# EXPECT: lost update | *total* | 13, 13
"""Threads started inside a function share its local variable."""

import threading


def sum_in_parallel(chunks):
    total = 0

    def add(chunk):
        nonlocal total
        for number in chunk:
            total = total + number

    threads = [threading.Thread(target=add, args=(chunk,)) for chunk in chunks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total


print("summed:", sum_in_parallel([[1, 2, 3], [4, 5, 6]]) > 0)
