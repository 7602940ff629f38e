# EXPECT: iteration during change or unsynchronised read/write or lost update | *numbers* | 18
import threading


def tickets(limit):
    n = 0
    while n < limit:
        n += 1
        yield n


numbers = tickets(1000)


def take(count):
    for _ in range(count):
        try:
            next(numbers)
        except ValueError:
            pass


threads = [threading.Thread(target=take, args=(8,)) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("taken")
