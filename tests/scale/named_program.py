"""A program whose objects are named in test_names.py."""

import datetime
import enum
import functools
import logging
import re
import threading


class Config:
    limits = [1000, 2000]  # noqa: RUF012 - shared on purpose
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = object()


class Color(enum.Enum):
    RED = object()


class Plain:
    def __init__(self):
        self.inner = object()


class Special(Plain):
    limit = object()


def rate():
    return 271828.5


def make():
    x = object()

    def inner():
        return x

    return inner


def f(conf):
    return conf, 1000003, (4, "five")


TABLE = {3: object(), "k" * 100: object()}
CONFIG = Config()
PLAIN = Plain()
INNER = make()
FAILED = ValueError
HANDLER = logging.Handler()
LOCK = threading.Lock()
STAMP = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2), "east"))
PART = functools.partial(f, object())
RATES = {"eu": {"de": {"same": rate()}}}     # a constant of code, too, which is nearer
PATTERN = re.compile("a")
