# EXPECT: clean
"""executor.map with a function that adds to a global."""

from concurrent.futures import ThreadPoolExecutor

total = 0


def add_up(numbers):
    return sum(numbers)


with ThreadPoolExecutor(max_workers=2) as executor:
    total = sum(executor.map(add_up, [range(0, 50), range(50, 100)]))
print("added", total > 0)
