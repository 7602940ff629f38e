"""The process that Ctrl-C is sent to.  It is started as a script by the program `signals`, in the same build.

It speaks through a page of memory shared with that program, since a write to a pipe gives the GIL away and would have
to wait for it again: the main thread would not be where it says it is.  The page holds numbers of eight bytes: how
many attempts have begun, then for each attempt when its KeyboardInterrupt was handled (monotonic nanoseconds, 0: not
yet).  The standard library's parts that a kind of waiting does not need are not imported.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BEGUN = 0            # index of the number of attempts begun; that of attempt k (from 1) ends is k
LIFETIME = 120.0     # seconds; a last resort, no trial comes near it
CALIBRATION = 0.02   # seconds: long enough to read past timer and scheduler


def main(page: str, doing: str, cpu_threads: int, attempts: int, call_seconds: float) -> None:
    """Be interrupted `attempts` times while the main thread does `doing` beside `cpu_threads` busy threads.

    Args:
        page: The file shared with who sends the signals.
        doing: A key of `MAIN`.
        cpu_threads: How many threads compute in Python all the time.
        attempts: How many signals will come.
        call_seconds: How long one C call takes, where `doing` has one.
    """
    with open(page, "r+b") as file:
        numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
    wait = MAIN[doing](call_seconds, attempts)
    for _ in range(cpu_threads):
        _start(_compute)
    for attempt in range(1, attempts + 1):
        try:
            numbers[BEGUN] = attempt
            wait()
        except KeyboardInterrupt:
            numbers[attempt] = time.monotonic_ns()
        else:
            raise AssertionError(f"{doing} ended without an interrupt")
    time.sleep(LIFETIME)   # it is killed before


def hold_to_standard_input() -> None:
    """Be killed by the kernel when the far end of standard input closes; a held GIL does not keep it from that.

    Where the system cannot do that (it takes Linux's F_SETSIG), `LIFETIME` ends the process.
    """
    faulthandler.dump_traceback_later(LIFETIME, exit=True)
    import fcntl
    import signal

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        try:
            os.read(0, 1)
        except BlockingIOError:
            return   # the other one lives
        os._exit(1)


def _start(run: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _compute() -> None:
    count = 0
    while True:
        count += 1
        count -= 1


def _for_ever(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        while True:
            work()

    return run


def _join(_seconds: float, attempts: int) -> Callable[[], object]:
    """Join a thread, each time another one: up to 3.12, a `join` that is interrupted takes its thread for ended."""
    threads = iter([_start(threading.Event().wait) for _ in range(attempts)])
    return lambda: next(threads).join()


def _lock(_seconds: float, _attempts: int) -> Callable[[], object]:
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire


def _event(_seconds: float, _attempts: int) -> Callable[[], object]:
    return threading.Event().wait


def _queue(_seconds: float, _attempts: int) -> Callable[[], object]:
    import queue

    return queue.Queue[int]().get


def _sleep(_seconds: float, _attempts: int) -> Callable[[], object]:
    return lambda: time.sleep(LIFETIME)


def _select(_seconds: float, _attempts: int) -> Callable[[], object]:
    import select

    reader, _writer = os.pipe()
    return lambda: select.select([reader], [], [])


def _computing(_seconds: float, _attempts: int) -> Callable[[], object]:
    return _compute


def _calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """A C function that holds the GIL and looks for no signal: adding up a range."""
    return _for_ever(_adding(seconds))


def _releasing_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """A C function that gives the GIL away and looks for no signal: deriving a key."""
    return _for_ever(_hashing(seconds))


def _looking_call(_seconds: float, _attempts: int) -> Callable[[], object]:
    """A C function that holds the GIL and looks for signals: a pattern that tries 2**60 ways."""
    import re

    pattern, text = re.compile("(a+)+$"), "a" * 60 + "b"
    return lambda: pattern.match(text)


def _beside_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """Wait for a lock while another thread is in calls that hold the GIL."""
    _start(_for_ever(_adding(seconds)))
    return _lock(seconds, _attempts)


def _beside_releasing_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """Wait for a lock while another thread is in calls that give the GIL away."""
    _start(_for_ever(_hashing(seconds)))
    return _lock(seconds, _attempts)


def _same_list(seconds: float, _attempts: int) -> Callable[[], object]:
    """Write to a list that another thread sorts: without the GIL, the list's own lock is held as long."""
    import random

    numbers = random.Random(1)
    source = [numbers.random() for _ in range(20_000)]
    begin = time.perf_counter()
    sorted(source)
    source *= max(1, round(seconds / (time.perf_counter() - begin)))
    numbers.shuffle(source)
    items = list(source)

    def sort() -> None:
        items[:] = source
        items.sort()

    def write() -> None:
        while True:
            try:
                items[0] = 0.5
            except IndexError:   # with the GIL, a list that is being sorted looks empty
                continue

    _start(_for_ever(sort))
    return write


def _adding(seconds: float) -> Callable[[], object]:
    return _sized(lambda count: sum(range(count)), seconds)


def _hashing(seconds: float) -> Callable[[], object]:
    from hashlib import pbkdf2_hmac

    return _sized(lambda count: pbkdf2_hmac("sha256", b"word", b"salt", count), seconds)


def _sized(call: Callable[[int], object], seconds: float) -> Callable[[], object]:
    """Return `call` with a count that makes it last about `seconds` when it has a core for itself."""
    count = 1000
    while (took := _took(call, count)) < min(CALIBRATION, seconds):
        count *= 2
    took = min(took, _took(call, count))   # the first one may have run on a core that was waking up
    size = max(1, round(count * seconds / took))
    return lambda: call(size)


def _took(call: Callable[[int], object], count: int) -> float:
    begin = time.thread_time()
    call(count)
    return time.thread_time() - begin


MAIN = {
    "join": _join, "lock": _lock, "lock-at-once": _lock, "event": _event, "queue": _queue, "sleep": _sleep,
    "select": _select, "computing": _computing,
    "calls": _calls, "releasing-calls": _releasing_calls, "looking-call": _looking_call,
    "beside-calls": _beside_calls, "beside-releasing-calls": _beside_releasing_calls, "same-list": _same_list,
}

if __name__ == "__main__":
    hold_to_standard_input()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
