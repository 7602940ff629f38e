"""Every thread appends to one list and takes from it."""

OUT = []


def f():
    for _ in range(50):
        OUT.append(1)
        OUT.pop()
