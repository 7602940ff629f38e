"""Every thread matches with one compiled pattern."""

import re

PATTERN = re.compile(r"a(b+)c")


def f():
    count = 0
    for _ in range(20):
        if PATTERN.match("abbbc"):
            count += 1
    return count
