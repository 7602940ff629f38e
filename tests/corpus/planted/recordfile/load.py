import hashlib

from recordfile.store import main

PAGE = bytes(6_000_000)


def work():
    total = 0
    for n in range(300):
        record = main.read(n)
        total += sum(record)
    return hashlib.sha256(PAGE).hexdigest(), total
