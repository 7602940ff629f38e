# EXPECT: clean
import threading
from array import array

PARTS = 4
numbers = array("l", [5, 1, 4, 2, 8, 0, 7, 3])
phase = threading.Barrier(PARTS)


def odd_even_sort(me):
    for step in range(len(numbers)):
        first = 2 * me + step % 2
        if first + 1 < len(numbers):
            a, b = numbers[first], numbers[first + 1]
            if a > b:
                numbers[first], numbers[first + 1] = b, a
        phase.wait(5)


threads = [threading.Thread(target=odd_even_sort, args=(n,)) for n in range(PARTS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(numbers.tolist())
