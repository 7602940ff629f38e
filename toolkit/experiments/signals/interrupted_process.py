"""The process that Ctrl-C is sent to; apart from the program `signals`, which starts it as a script in the same build.

It reports through a page of memory shared with that program: a write to a pipe would release the GIL and wait for it
again, so the main thread would not be where it claims to be.  The page holds numbers of eight bytes: the number of
attempts begun, then for each attempt the time when its KeyboardInterrupt was handled (monotonic nanoseconds, 0: not
yet).  Modules are imported only by the activities that need them.
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

BEGUN = 0            # index of the number of attempts begun; attempt k, from 1 on, has index k
LIFETIME = 120.0     # seconds, a last resort: no trial takes nearly as long
CALIBRATION = 0.02   # seconds, long enough for timer and scheduler not to matter


def main(page: str, activity: str, cpu_threads: int, attempts: int, call_seconds: float) -> None:
    """Be interrupted `attempts` times in the activity of the main thread, beside `cpu_threads` busy threads.

    Args:
        page: The file shared with the sender of the signals.
        activity: A key of `MAIN`.
        cpu_threads: Number of threads that compute in Python all the time.
        attempts: Number of signals to expect.
        call_seconds: Duration of one C call, where the activity has one.
    """
    with open(page, "r+b") as file:
        numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
    wait = MAIN[activity](call_seconds, attempts)
    for _ in range(cpu_threads):
        _start(_compute)
    for attempt in range(1, attempts + 1):
        try:
            numbers[BEGUN] = attempt
            wait()
        except KeyboardInterrupt:
            numbers[attempt] = time.monotonic_ns()
        else:
            raise AssertionError(f"{activity} ended without an interrupt")
    time.sleep(LIFETIME)   # the sender kills this process before


def end_with_standard_input() -> None:
    """Let the kernel kill this process when the far end of standard input closes, even if a thread holds the GIL.

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
            return   # the far end is open
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
    """Join a different thread each time: up to 3.12, an interrupted `join` treats its thread as ended."""
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
    """Call a C function that holds the GIL and checks for no signal: adding up a range."""
    return _for_ever(_adding(seconds))


def _releasing_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """Call a C function that releases the GIL and checks for no signal: deriving a key."""
    return _for_ever(_hashing(seconds))


def _looking_call(_seconds: float, _attempts: int) -> Callable[[], object]:
    """Call a C function that holds the GIL and checks for signals: a pattern that tries 2**60 ways."""
    import re

    pattern, text = re.compile("(a+)+$"), "a" * 60 + "b"
    return lambda: pattern.match(text)


def _beside_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """Wait for a lock while another thread is in calls that hold the GIL."""
    _start(_for_ever(_adding(seconds)))
    return _lock(seconds, _attempts)


def _beside_releasing_calls(seconds: float, _attempts: int) -> Callable[[], object]:
    """Wait for a lock while another thread is in calls that release the GIL."""
    _start(_for_ever(_hashing(seconds)))
    return _lock(seconds, _attempts)


def _same_list(seconds: float, _attempts: int) -> Callable[[], object]:
    """Write to a list that another thread sorts: without the GIL, sorting holds the list's own lock."""
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
    took = min(took, _took(call, count))   # the first call may have run on a core that was waking up
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
    end_with_standard_input()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
