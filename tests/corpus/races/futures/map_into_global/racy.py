# EXPECT: lost update | global total in racy.py | 12, 12
"""executor.map with a function that adds to a global."""

from concurrent.futures import ThreadPoolExecutor

total = 0


def add_up(numbers):
    global total
    for number in numbers:
        total += number


with ThreadPoolExecutor(max_workers=2) as executor:
    list(executor.map(add_up, [range(0, 50), range(50, 100)]))
print("added", total > 0)
