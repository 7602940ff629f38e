# EXPECT: lost update | *calls* | 11, 11
"""A decorator that counts calls on the function it returns."""

import functools
import threading


def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@counted
def square(number):
    return number * number


def compute(numbers, out):
    out.extend(square(number) for number in numbers)


results = [[], []]
threads = [threading.Thread(target=compute, args=(range(5), out)) for out in results]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results)
