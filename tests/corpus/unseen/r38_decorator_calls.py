# EXPECT: lost update | *calls* | 9
import functools
import threading


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)

    wrapper.calls = 0
    return wrapper


@counted
def square(x):
    return x * x


def work(numbers, out):
    for n in numbers:
        out.append(square(n))


a, b = [], []
threads = [
    threading.Thread(target=work, args=((1, 2, 3), a)),
    threading.Thread(target=work, args=((4, 5, 6), b)),
]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(a, b, square.__name__)
