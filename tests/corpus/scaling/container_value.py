"""Every thread reads the same value out of a shared dict."""

TABLE = {number: (number * 1.5, f"row {number}") for number in range(10)}


def f():
    total = 0.0
    for _ in range(100):
        row = TABLE[3]
        total += row[0]
    return total
