# EXPECT-NOTE: idempotent memo | *squares[* | 10, 11, 12
"""A memo of a pure function: computing a value twice does no harm."""

import threading

squares = {}


def square(number):
    if number not in squares:
        squares[number] = number * number
    return squares[number]


def register(names, out):
    out.extend(square(len(name)) > 0 for name in names)


registered = [[], []]
threads = [threading.Thread(target=register, args=(["ann", "ben"], out)) for out in registered]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(registered)
