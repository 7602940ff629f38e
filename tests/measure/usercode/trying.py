"""Functions that a trial has something to say about."""

import json
import threading


def second_fails(number):
    return parse(number)


def parse(number):
    if number == 1:
        return json.loads("nonsense")
    return number


def exits(number):
    raise SystemExit(number)


async def async_fails(number):
    raise LookupError(number)


def plain(number):
    return number


def prints(number):
    print("something")
    return number


def returns_a_lock(number):
    return threading.Lock()


def never_returns(number):
    threading.Event().wait()


def leaves_a_thread(number):
    threading.Thread(target=threading.Event().wait, name="poller", daemon=True).start()
    return number


def leaves_a_thread_that_waits(number):
    threading.Thread(target=threading.Event().wait, name="poller").start()
    return number


def last_is_a_lock(number):
    return threading.Lock() if number == numbers[-1] else number


def imports_nothing_there(number):
    import nothing_there

    return nothing_there


def bad_payloads():
    return [len(3)]


def refuse(results):
    assert results == [], "too many"


class Loud:
    def __repr__(self):
        raise RuntimeError("no repr")


numbers = [0, 1, 2]
