# EXPECT: lost update | *total* | 11
import threading


def make_adder():
    total = 0

    def add(numbers):
        nonlocal total
        for n in numbers:
            total += n

    def read():
        return total

    return add, read


add, read = make_adder()
threads = [threading.Thread(target=add, args=(range(k, k + 5),)) for k in (0, 5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(read() >= 0)
