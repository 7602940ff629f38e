"""Ten things that threads do: alone, together on one object, and partly without the GIL."""

import hashlib
import json
import re

TEXT = "the quick brown fox jumps over the lazy dog " * 40
RECORD = {"name": "fox", "legs": 4, "tags": ["quick", "brown"], "jumps": {"over": "dog", "times": 3}}
BLOCK = b"x" * 65536
WORD = re.compile(r"\b(\w)(\w*)\b")
DICT = {}
LIST = []
COUNTS = [0] * 64


class Holder:
    """Has an attribute that everybody changes."""

    value = 0


HOLDER = Holder()


def arithmetic():
    """Add numbers of its own."""
    total = 0
    for number in range(20000):
        total += number * number
    return total


def own_dict():
    """Fill a dict of its own."""
    found = {}
    for number in range(10000):
        found[number % 500] = number
    return found


def sorting():
    """Sort a list of its own."""
    return sorted((number * 7919 % 10007 for number in range(5000)), key=lambda number: -number)


def text():
    """Replace words by a compiled expression, which all share."""
    return WORD.sub(lambda match: match[2] + match[1], TEXT)


def parsing():
    """Write JSON and read it again."""
    for _ in range(150):
        json.loads(json.dumps(RECORD))


def shared_dict():
    """Change one dict together."""
    for number in range(5000):
        DICT[number % 50] = DICT.get(number % 50, 0) + 1


def shared_list():
    """Append to one list together, and empty it now and then."""
    for number in range(10000):
        LIST.append(number)  # noqa: PERF402 - appending is what is measured
    LIST.clear()


def shared_attribute():
    """Change one attribute together."""
    for _ in range(10000):
        HOLDER.value += 1


def shared_slots():
    """Change one list's elements together."""
    for number in range(10000):
        COUNTS[number % 64] = number


def hashing():
    """Hash without the GIL, and count in Python between."""
    for _ in range(5):
        hashlib.sha256(BLOCK).hexdigest()
        sum(range(10000))
