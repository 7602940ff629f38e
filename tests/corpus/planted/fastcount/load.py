import hashlib

from fastcount import bump

PAGE = bytes(6_000_000)


def work():
    for n in range(2_000):
        bump(n & 3)
    return hashlib.sha256(PAGE).hexdigest()
