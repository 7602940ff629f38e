# EXPECT: clean
"""A rate-limiting decorator counts calls in a closure variable."""

import functools
import threading


def at_most(limit):
    def decorate(function):
        calls = 0
        lock = threading.Lock()

        @functools.wraps(function)
        def wrapper(*args):
            nonlocal calls
            with lock:
                calls += 1
                if calls > limit:
                    raise RuntimeError("called too often")
            return function(*args)

        return wrapper

    return decorate


@at_most(100)
def greet(name):
    return f"hello {name}"


greetings = [[], []]


def visit(names, out):
    for name in names:
        out.append(greet(name))


visitors = [threading.Thread(target=visit, args=(["ann", "ben"], out)) for out in greetings]
for visitor in visitors:
    visitor.start()
for visitor in visitors:
    visitor.join()
print(greetings)
