"""A user's functions, payloads and modules that cannot travel, each for its own reason."""

import functools
import threading

NUMBER = 5
TEXT = "payload"
TABLE = {"a": 1}
NOTHING = []
ITERATOR = iter([1, 2])
LOCKED = [1, 2, {"lock": threading.Lock()}]
LOOPED = {"lock": threading.Lock()}
LOOPED["self"] = LOOPED


class Account:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, payload):
        return payload

    def deposit(self, payload):
        return payload

    def report(self):
        return "report"

    class Teller:
        fee = staticmethod(lambda payload: payload)

    @staticmethod
    def fee(payload):
        return payload

    @classmethod
    def open(cls, payload):
        return payload


class Slotted:
    __slots__ = ("lock",)

    def __init__(self):
        self.lock = threading.Lock()


class Grumpy:
    def __reduce__(self):
        raise RuntimeError("leave me alone")


def plain(payload):
    return payload


def keep_all(function):
    @functools.wraps(function)
    def wrapper(payload):
        return function(payload)
    return wrapper


@keep_all
def decorated(payload):
    return payload


def make_closure(threshold, names):
    def over(payload):
        return payload > threshold and payload in names
    return over


def make_nested():
    def nested(payload):
        return payload
    return nested


def hide(function):
    def hidden(payload):
        return function(payload)
    return hidden


@hide
def hidden_by_a_decorator(payload):
    return payload


closure = make_closure(5, ["a"])
nested = make_nested()
square = lambda payload: payload**2
bound = Account().deposit
account = Account()
part = functools.partial(plain, 1)
main_function = make_nested()
main_function.__module__ = "__main__"


async def fetch(payload):
    return payload


async def fetch_all():
    return []


class Fetcher:
    async def __call__(self, payload):
        return payload


fetcher = Fetcher()
fetch_part = functools.partial(fetch)
identity = functools.partial(max, 0)


@functools.cache
def cached(payload):
    return payload


def count_up():
    return 1


def generate(payload):
    yield payload


generating = functools.partial(generate)


async def generate_async(payload):
    yield payload


def make_accounts():
    return [Account()]


def make_slotted():
    return [Slotted()]


def make_grumpy():
    return [[Grumpy()]]


def make_deep():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return [deep]


def make_numbers():
    return (number for number in range(3))


def make_none():
    return None


def make_trouble():
    raise OSError("no such table")


def make_needy(size):
    return [size]


def make_leaving():
    raise SystemExit(4)


def make_broken_off():
    yield 1
    raise KeyError("second")
