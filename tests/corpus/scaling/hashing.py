"""Threads hash bytes of their own."""

import hashlib


def f():
    return hashlib.sha256(bytes(20_000)).hexdigest()
