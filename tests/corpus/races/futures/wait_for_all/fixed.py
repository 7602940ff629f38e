# EXPECT: clean
"""wait() for the first is not wait() for all."""

from concurrent.futures import ThreadPoolExecutor, wait

grades = [0, 0]


def grade(index, answers):
    grades[index] = sum(answers)


with ThreadPoolExecutor(max_workers=2) as executor:
    first = executor.submit(grade, 0, [1, 1, 0])
    second = executor.submit(grade, 1, [1, 1, 1])
    wait([first, second])
    known = grades[1] in (0, 3)
print(known, grades)
