# EXPECT: clean
"""A map object handed to two threads; its function is Python code."""

import threading


def square(number):
    return number * number


squares = map(square, range(10))
squares_lock = threading.Lock()


def take(count, out):
    for _ in range(count):
        with squares_lock:
            out.append(next(squares))


results = [[], []]
takers = [threading.Thread(target=take, args=(2, out)) for out in results]
for taker in takers:
    taker.start()
for taker in takers:
    taker.join()
print("taken")
