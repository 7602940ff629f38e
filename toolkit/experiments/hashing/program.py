"""SHA-256 of eight messages, by one thread or divided among several: C code that releases the GIL for long messages.

The threads hash one bytes object or a copy each: without the GIL they contend for the reference count of a shared one.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time

from gilscope.toolkit.measure.child.base import gil_enabled
from gilscope.toolkit.measure.child.program import ProgramValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.measure.child.program import ProgramTrial

MESSAGES = 8
THRESHOLD = 2048          # bytes from which hashlib releases the GIL, by its documentation
PROBED = (THRESHOLD - 1, THRESHOLD, THRESHOLD + 1)
PROBES = 20_000           # hashes; a released GIL is taken by another thread within ten to 3,000 of them
PROBE_SECONDS = 0.1       # at least, since on a busy machine the other thread has no core at first
HASH_SECONDS = 0.25e-6    # overhead of a call on the nominal machine
BYTES_A_SECOND = 1.5e9    # speed of the nominal machine, an x86-64 with SHA instructions
WARM_SECONDS = 0.002      # nominal warm-up of each thread before the clock starts
SPARE_MEMORY = 64 << 20   # bytes that a trial leaves free


def passes(size: int, work: float) -> int:
    """Return the number of times to hash eight messages of `size` bytes, for `work` seconds on a nominal machine.

    The real machine and build do not matter: all do the same work, whatever the number of threads.
    """
    return max(1, round(work / MESSAGES / (HASH_SECONDS + size / BYTES_A_SECOND)))


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the wall seconds of hashing the eight messages once.

    The cell's parameters are "bytes", the length of a message, and, unless serial, "object": "shared" or "copy".
    """
    size, own = trial.count("bytes"), trial.parameters.get("object") == "copy"
    _need_memory(trial, size * (1 + (trial.workers if own else 0)))
    message = b"0" * size
    times = passes(size, trial.scales["work"])
    expected = hashlib.sha256(message).digest()
    trial.progress()
    taken = _in_threads(trial, message, times, expected) if trial.model != "serial" else _serially(
        trial, message, times, expected)
    taken.metrics |= {"passes": times, "library": _library()}
    if size == THRESHOLD and gil_enabled() is not False:
        taken.metrics["gil_let_go_from"] = smallest_releasing_size(PROBED)
    return taken


def hash_times(message: bytes, times: int) -> bytes:
    """Hash `message` `times` times, at least once, and return the last digest."""
    sha256 = hashlib.sha256
    found = sha256(message)
    for _ in range(times - 1):
        found = sha256(message)
    return found.digest()


def smallest_releasing_size(sizes: tuple[int, ...]) -> int:
    """Return the smallest of `sizes`, ascending, whose hashing releases the GIL; 0 if none does."""
    return next((size for size in sizes if _releases_gil(size)), 0)


def _releases_gil(size: int) -> bool:
    """Return True if another thread runs while this one hashes, at a switch interval too long to hand the GIL over."""
    ran, ended = [0], threading.Event()
    interval, message = sys.getswitchinterval(), b"0" * size
    sys.setswitchinterval(1000.0)
    started = threading.Event()

    def run() -> None:
        started.set()
        while not ended.is_set():
            ran[0] += 1
            time.sleep(0)  # release the GIL and wait for it again

    thread = threading.Thread(target=run)
    thread.start()
    try:
        started.wait()
        return _runs_meanwhile(ran, message)
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)


def _runs_meanwhile(ran: list[int], message: bytes) -> bool:
    """Return True if the other thread's counter `ran` changes while this one hashes."""
    sha256, before, began = hashlib.sha256, ran[0], time.monotonic()
    while time.monotonic() - began < PROBE_SECONDS:
        for _ in range(PROBES):
            sha256(message)
            if ran[0] != before:
                return True
    return False


def _serially(trial: ProgramTrial, message: bytes, times: int, expected: bytes) -> ProgramValue:
    hash_times(message, passes(len(message), WARM_SECONDS * MESSAGES))
    with trial.measuring() as clock:
        digests = [hash_times(message, times) for _ in range(MESSAGES)]
    _check(trial, digests, expected)
    return ProgramValue(seconds=clock.wall / times, cpu=clock.cpu / times)


def _in_threads(trial: ProgramTrial, message: bytes, times: int, expected: bytes) -> ProgramValue:
    begin = threading.Barrier(trial.workers + 1)
    digests: list[bytes] = []
    own = trial.parameters["object"] == "copy"

    def hash_share() -> None:
        # Made by the thread that uses it: free-threaded builds count the owner's references without contention.
        mine = bytes(bytearray(message)) if own else message
        hash_times(mine, passes(len(mine), WARM_SECONDS * MESSAGES))
        begin.wait()
        digests.extend([hash_times(mine, times) for _ in range(MESSAGES // trial.workers)])

    seconds, cpu = _timed(trial, hash_share, begin)
    _check(trial, digests, expected)
    parallel = trial.model == "free-threaded" or len(message) >= THRESHOLD
    return ProgramValue(seconds=seconds / times, cpu=cpu / times, wanted_cores=trial.workers if parallel else 1)


def _timed(trial: ProgramTrial, target: Callable[[], None], begin: threading.Barrier) -> tuple[float, float]:
    threads = [threading.Thread(target=target) for _ in range(trial.workers)]
    for thread in threads:
        thread.start()
    while begin.n_waiting < trial.workers and all(thread.is_alive() for thread in threads):
        time.sleep(0.001)  # until all threads are warm, so that warming is not measured
    if begin.n_waiting < trial.workers:
        begin.abort()
        trial.stop("a thread ended before it hashed", "exception")
    with trial.measuring() as clock:
        begin.wait()
        for thread in threads:
            thread.join()
    return clock.wall, clock.cpu


def _check(trial: ProgramTrial, digests: list[bytes], expected: bytes) -> None:
    wrong = sum(digest != expected for digest in digests)
    if wrong or len(digests) != MESSAGES:
        trial.stop(f"{wrong} of {len(digests)} digests differ from the serial one, of {MESSAGES} messages",
                   "wrong-result")


def _need_memory(trial: ProgramTrial, needed: int) -> None:
    free = available_memory()
    if free is not None and needed + SPARE_MEMORY > free:
        trial.stop(f"needs {needed >> 20} MiB of memory, {free >> 20} MiB are available")


def available_memory() -> int | None:
    """Return the bytes available without swapping, by Linux's own estimate, or None where there is none."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _library() -> str:
    """Return the name of the library that hashes: only builds with the same one can be compared."""
    if hashlib.sha256.__module__ != "_hashlib":
        return hashlib.sha256.__module__
    try:
        from _ssl import OPENSSL_VERSION
    except ImportError:
        return "OpenSSL"
    return OPENSSL_VERSION
