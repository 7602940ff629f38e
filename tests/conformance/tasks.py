"""Tasks that misbehave on purpose, or show what a worker is."""

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path


class LockedError(Exception):
    """Cannot be pickled."""

    def __init__(self):
        super().__init__("has a lock")
        self.lock = threading.Lock()


class PickyError(Exception):
    """Pickles, but cannot be rebuilt: the base class remembers one argument, __init__ wants two."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def square(number):
    return number * number


async def square_later(number):
    await asyncio.sleep(0)
    return number * number


def identity(payload):
    return payload


def uneven(number):
    """Work longer the earlier the payload is in a list of 40, so that results are ready out of order."""
    for _ in range((40 - number) * 2000):
        pass
    return number


def divide_by(number):
    return 1 / number  # the line a traceback must show


def raise_locked(_payload):
    raise LockedError


def raise_picky(_payload):
    raise PickyError("one", "two")


def raise_system_exit(_payload):
    sys.exit("a task called sys.exit")


def return_lock(_payload):
    return threading.Lock()


def exit_at_once(_payload):
    os._exit(3)


def kill_self(_payload):
    os.kill(os.getpid(), signal.SIGKILL)


def leave_thread_behind(_payload):
    threading.Thread(target=threading.Event().wait).start()
    return "left"


def mark_and_sleep(path):
    """Create a file, then stay busy for longer than anybody waits."""
    Path(path).touch()
    for _ in range(6000):   # a signal that comes just before the system's call does not wake that one sleep
        time.sleep(0.1)


async def mark_and_sleep_async(path):
    os.close(os.open(path, os.O_CREAT))
    await asyncio.sleep(600)


def recurse_in_c(_payload):
    """Recurse through C code (repr of nested lists) until Python says stop."""
    nested = []
    for _ in range(200_000):
        nested = [nested]
    try:
        repr(nested)
    except RecursionError:
        outcome = "RecursionError"
    else:
        outcome = "no error"
    while nested:  # taken apart by hand: freeing it recurses too
        nested = nested.pop()
    return outcome


def import_module(name):
    __import__(name)


def use_stdlib(_payload):
    """Import what aborts in 3.12's second interpreter unless the main one had it first."""
    import datetime as dt
    import decimal
    import hashlib
    import sqlite3

    digest = hashlib.sha256(b"").hexdigest()[:4]
    with sqlite3.connect(":memory:") as connection:
        (number,) = connection.execute("select 7").fetchone()
    connection.close()
    return digest, number, str(decimal.Decimal("1.5") * 2), dt.date(2000, 1, 1).isoformat()


def use_asyncio(number):
    return asyncio.run(square_later(number))


def add_to_counter(count, counter):
    for _ in range(count):
        with counter.lock:
            counter.value += 1
    return count


def add_to_dict(key, shared):
    shared[key] = key


def add_to_list(item, shared):
    shared.append(item)


def set_value(value, shared):
    shared.value = value


def read_value(_payload, shared):
    return shared.value


def read_items(_payload, shared):
    return sorted(shared)
