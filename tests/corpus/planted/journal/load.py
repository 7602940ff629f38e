import hashlib

from journal.seq import entry

PAGE = bytes(6_000_000)


def work():
    hashlib.sha256(PAGE).hexdigest()
    return [entry(100) for _ in range(15)][-1] > 0
