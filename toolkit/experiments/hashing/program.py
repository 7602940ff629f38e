"""SHA-256 of eight messages, by one thread or shared out among several: C code that lets go of the GIL, or does not.

The threads hash one bytes object or a copy each: without the GIL they count references to a shared one at once.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time

from gilscope.toolkit.measure.program.interface import Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.measure.program.interface import Trial

MESSAGES = 8
THRESHOLD = 2048          # bytes from which the GIL is let go of, as hashlib's documentation has it
PROBED = (THRESHOLD - 1, THRESHOLD, THRESHOLD + 1)
PROBES = 20_000           # hashes; where the GIL is let go of, another thread takes it within some ten to 3,000
PROBE_SECONDS = 0.1       # at least: on a busy machine the other thread has no core at first
HASH_SECONDS = 0.25e-6    # what a call costs beside the hashing, on the nominal machine
BYTES_A_SECOND = 1.5e9    # how fast that hashes: an x86-64 with SHA instructions
WARM_SECONDS = 0.002      # nominal, by each thread before the clock starts
SPARE_MEMORY = 64 << 20   # bytes that a trial leaves free


def passes(size: int, work: float) -> int:
    """Return how often eight messages of `size` bytes are hashed so that a nominal machine is busy for `work` seconds.

    It does not ask the machine or the build: all of them do the same work, whatever the number of threads.
    """
    return max(1, round(work / MESSAGES / (HASH_SECONDS + size / BYTES_A_SECOND)))


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of hashing the eight messages once.

    Parameters of the cell: "bytes", the length of a message, and "object", "shared" or "copy", unless serial.
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
    if size == THRESHOLD and _gil_is_on():
        taken.metrics["gil_let_go_from"] = smallest_that_lets_go(PROBED)
    return taken


def hash_times(message: bytes, times: int) -> bytes:
    """Hash `message` `times` times, at least once, and return the last digest."""
    sha256 = hashlib.sha256
    found = sha256(message)
    for _ in range(times - 1):
        found = sha256(message)
    return found.digest()


def smallest_that_lets_go(sizes: tuple[int, ...]) -> int:
    """Return the smallest of `sizes`, ascending, whose hashing lets another thread have the GIL; 0: none did."""
    return next((size for size in sizes if _lets_go(size)), 0)


def _lets_go(size: int) -> bool:
    """Hash until another thread has run, which waits for the GIL and is never given it by the switch interval."""
    ran, ended = [0], threading.Event()
    interval, message = sys.getswitchinterval(), b"0" * size
    sys.setswitchinterval(1000.0)
    started = threading.Event()

    def run() -> None:
        started.set()
        while not ended.is_set():
            ran[0] += 1
            time.sleep(0)  # lets go of the GIL and waits for it again

    thread = threading.Thread(target=run)
    thread.start()
    try:
        started.wait()
        return _seen_running(ran, message)
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)


def _seen_running(ran: list[int], message: bytes) -> bool:
    sha256, before, began = hashlib.sha256, ran[0], time.monotonic()
    while time.monotonic() - began < PROBE_SECONDS:
        for _ in range(PROBES):
            sha256(message)
            if ran[0] != before:
                return True
    return False


def _serially(trial: Trial, message: bytes, times: int, expected: bytes) -> Taken:
    hash_times(message, passes(len(message), WARM_SECONDS * MESSAGES))
    with trial.measuring() as clock:
        digests = [hash_times(message, times) for _ in range(MESSAGES)]
    _check(trial, digests, expected)
    return Taken(seconds=clock.wall / times, cpu=clock.cpu / times)


def _in_threads(trial: Trial, message: bytes, times: int, expected: bytes) -> Taken:
    begin = threading.Barrier(trial.workers + 1)
    digests: list[bytes] = []
    own = trial.parameters["object"] == "copy"

    def hash_share() -> None:
        # Made by the thread that uses it: a free-threaded build counts its owner's references apart from others'.
        mine = bytes(bytearray(message)) if own else message
        hash_times(mine, passes(len(mine), WARM_SECONDS * MESSAGES))
        begin.wait()
        digests.extend([hash_times(mine, times) for _ in range(MESSAGES // trial.workers)])

    seconds, cpu = _timed(trial, hash_share, begin)
    _check(trial, digests, expected)
    parallel = trial.model == "free-threaded" or len(message) >= THRESHOLD
    return Taken(seconds=seconds / times, cpu=cpu / times, wanted_cores=trial.workers if parallel else 1)


def _timed(trial: Trial, target: Callable[[], None], begin: threading.Barrier) -> tuple[float, float]:
    threads = [threading.Thread(target=target) for _ in range(trial.workers)]
    for thread in threads:
        thread.start()
    while begin.n_waiting < trial.workers and all(thread.is_alive() for thread in threads):
        time.sleep(0.001)  # until all are warm: their warming is not the measurement's
    if begin.n_waiting < trial.workers:
        begin.abort()
        trial.stop("a thread ended before it hashed", "exception")
    with trial.measuring() as clock:
        begin.wait()
        for thread in threads:
            thread.join()
    return clock.wall, clock.cpu


def _check(trial: Trial, digests: list[bytes], expected: bytes) -> None:
    wrong = sum(digest != expected for digest in digests)
    if wrong or len(digests) != MESSAGES:
        trial.stop(f"{wrong} of {len(digests)} digests differ from the serial one, of {MESSAGES} messages",
                   "wrong-result")


def _need_memory(trial: Trial, needed: int) -> None:
    free = available_memory()
    if free is not None and needed + SPARE_MEMORY > free:
        trial.stop(f"needs {needed >> 20} MiB of memory, {free >> 20} MiB are available")


def available_memory() -> int | None:
    """Return how many bytes can be had without swapping, by Linux's own estimate; None where there is none."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _library() -> str:
    """Return what hashes: builds are compared by it, too."""
    if hashlib.sha256.__module__ != "_hashlib":
        return hashlib.sha256.__module__
    try:
        from _ssl import OPENSSL_VERSION
    except ImportError:
        return "OpenSSL"
    return OPENSSL_VERSION


def _gil_is_on() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())
