"""CPU work that runs beside a measurement: in threads, processes, or subinterpreters with a GIL of their own.

The work is that of "Python behind the scenes #13" (2021), `n += 1; n -= 1`, in pieces that are counted. All burners
are started and ready before the first one burns, since starting anything beside busy processes may take seconds.
Imports little, since it runs in the measured process.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, override

from gilscope.runners import _interpreters
from gilscope.toolkit.measure.child.program import sibling

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0   # 3.13t takes seconds to start a process on a busy machine
STOP_SECONDS = 20.0    # a thread needs some of it when it waits beside eight others at a switch interval of 0.1 s
PIECE = 1000           # iterations between two checks whether to stop: 0.05 ms


class Burner(ABC):
    """One piece of CPU work.  Creating it starts it; then it is ready and idle."""

    @abstractmethod
    def begin(self) -> None:
        """Let it burn."""

    @abstractmethod
    def wait_until_burning(self) -> None:
        """Return when it burns."""

    @abstractmethod
    def request_stop(self) -> None:
        """Let it stop burning."""

    @abstractmethod
    def rate(self) -> float:
        """Wait until it has stopped burning and return its iterations a second."""

    @abstractmethod
    def release(self) -> None:
        """Let it end, whatever state it is in."""

    @abstractmethod
    def join(self) -> None:
        """Wait for its end after `release`."""


class ThreadBurner(Burner):
    """A thread of this interpreter; with a GIL, the other threads wait for it."""

    def __init__(self) -> None:
        self._ready, self._go, self._burning = threading.Event(), threading.Event(), threading.Event()
        self._stop = False
        self._rate = 0.0
        self._thread = threading.Thread(target=self._run, name="burner", daemon=True)
        self._thread.start()
        _wait(self._ready, "start")

    @override
    def begin(self) -> None:
        self._go.set()

    @override
    def wait_until_burning(self) -> None:
        _wait(self._burning, "get to burn")

    @override
    def request_stop(self) -> None:
        self._stop = True

    @override
    def rate(self) -> float:
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"a CPU thread did not stop within {STOP_SECONDS:g} s")
        return self._rate

    @override
    def release(self) -> None:
        self._stop = True
        self._go.set()

    @override
    def join(self) -> None:
        self.rate()

    def _run(self) -> None:
        self._ready.set()
        self._go.wait()
        pieces, begun = 0, time.perf_counter()
        self._burning.set()
        # This loop calls nothing that releases the GIL: that would let others in.
        while not self._stop:
            n = 0
            for _ in range(PIECE):
                n += 1
                n -= 1
            pieces += 1
        self._rate = pieces * PIECE / (time.perf_counter() - begun)


def _wait(event: threading.Event, what: str) -> None:
    if not event.wait(START_SECONDS):
        raise TimeoutError(f"a CPU thread did not {what} within {START_SECONDS:g} s")


# The code of a burner in another process or interpreter: reports "r" when it is ready, burns from one byte to the next,
# reports its iterations a second, and ends when its pipe closes.  It looks for the second byte every millisecond or so,
# since that is a system call.
REMOTE_CODE = f"""
import os, time

def burn(orders, reports):
    os.write(reports, b"r")
    if not os.read(orders, 1):
        return
    os.set_blocking(orders, False)
    pieces, begun = 0, time.perf_counter()
    os.write(reports, b"b")
    while True:
        n = 0
        for _ in range({PIECE}):
            n += 1
            n -= 1
        pieces += 1
        if pieces % 16 == 0:
            try:
                os.read(orders, 1)
            except BlockingIOError:
                continue
            break
    rate = pieces * {PIECE} / (time.perf_counter() - begun)
    os.set_blocking(orders, True)
    os.write(reports, b"%.0f\\n" % rate)
    os.read(orders, 1)
"""


class PipeBurner(Burner):
    """A burner that shares nothing with this interpreter: it runs `REMOTE_CODE` behind two pipes."""

    def __init__(self, orders: int, reports: int) -> None:
        """Wait until the started burner is ready; `orders` and `reports` are this side's ends of the pipes."""
        self._orders = orders
        self._reports = reports
        try:
            self._expect(b"r", "start")
        except BaseException:
            self.release()
            self.join()
            raise

    @override
    def begin(self) -> None:
        os.write(self._orders, b"g")

    @override
    def wait_until_burning(self) -> None:
        self._expect(b"b", "get to burn")

    @override
    def request_stop(self) -> None:
        os.write(self._orders, b"s")

    @override
    def rate(self) -> float:
        report = b""
        while not report.endswith(b"\n"):
            report += self._read(STOP_SECONDS, "stop")
        return float(report)

    def _expect(self, word: bytes, what: str) -> None:
        if (report := self._read(START_SECONDS, what)) != word:
            raise RuntimeError(f"CPU work beside did not {what}, it said {report!r}")

    def _read(self, seconds: float, what: str) -> bytes:
        if not select.select([self._reports], [], [], seconds)[0]:
            raise TimeoutError(f"CPU work beside did not {what} within {seconds:g} s")
        if not (report := os.read(self._reports, 1)):
            raise RuntimeError(f"CPU work beside ended before it could {what}{self._reason()}")
        return report

    def _reason(self) -> str:
        """Return why it ended, with a colon before it, "" if that is not known."""
        return ""


class ProcessBurner(PipeBurner):
    """A process of the same build."""

    def __init__(self) -> None:
        self._process = sibling("-c", f"{REMOTE_CODE}\nburn(0, 1)", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(self._process.stdin.fileno(), self._process.stdout.fileno())

    @override
    def release(self) -> None:
        self._process.kill()

    @override
    def join(self) -> None:
        self._process.communicate()


class SubinterpreterBurner(PipeBurner):
    """An interpreter of this process with its own GIL, entered once by a thread of its own."""

    def __init__(self) -> None:
        far_orders, orders = os.pipe()
        reports, far_reports = os.pipe()
        self._error: BaseException | None = None
        self._may_close = threading.Event()
        self._thread = threading.Thread(target=self._host, args=(far_orders, far_reports), name="burner", daemon=True)
        self._thread.start()
        super().__init__(orders, reports)

    @override
    def release(self) -> None:
        os.close(self._orders)

    @override
    def join(self) -> None:
        self._may_close.set()
        self._thread.join(STOP_SECONDS)
        os.close(self._reports)
        if self._thread.is_alive():
            raise TimeoutError(f"a subinterpreter did not end within {STOP_SECONDS:g} s")

    @override
    def _reason(self) -> str:
        self._may_close.set()
        self._thread.join(1.0)
        return "" if self._error is None else f": {self._error}"

    def _host(self, orders: int, reports: int) -> None:
        try:
            interpreter = _interpreters.create()
            try:
                interpreter.exec(f"import sys\n{_interpreters.PRELUDE}{REMOTE_CODE}\nburn({orders}, {reports})")
            finally:
                os.close(reports)   # the thread that waits for a report reads the end of the file
                self._may_close.wait(STOP_SECONDS)   # 3.12 may crash when one ends while others burn
                interpreter.close()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for a report
            self._error = error
            with suppress(OSError):  # closed above unless there was no interpreter
                os.close(reports)
        finally:
            os.close(orders)


KINDS: dict[str, type[ThreadBurner | ProcessBurner | SubinterpreterBurner]] = {
    "threads": ThreadBurner, "processes": ProcessBurner, "subinterpreters": SubinterpreterBurner,
}


class Burners:
    """All CPU work beside one measurement."""

    def __init__(self, burners: list[Burner]) -> None:
        """All are ready and idle."""
        self._burners = burners

    def go(self) -> None:
        """Let all burn; return when they do."""
        for burner in self._burners:
            burner.begin()
        for burner in self._burners:
            burner.wait_until_burning()

    def stop(self) -> float:
        """Let all stop and return the sum of their iterations a second; they end with the `with` block."""
        for burner in self._burners:
            burner.request_stop()
        return sum(burner.rate() for burner in self._burners)


@contextmanager
def burning(kind: str, count: int) -> Iterator[Burners]:
    """Start `count` burners, yield them ready and idle, and end them on leaving, whatever state they are in.

    Args:
        kind: "threads", "processes" or "subinterpreters".
        count: 0 for none.

    Raises:
        RuntimeError: one did not start.
        TimeoutError: one did not start or end in time.
    """
    if kind == "subinterpreters":
        _interpreters.prepare_main()
    started: list[Burner] = []
    try:
        started.extend(KINDS[kind]() for _ in range(count))
        yield Burners(started)
    finally:
        _end(started)


def _end(burners: list[Burner]) -> None:
    failures = []
    for burner in burners:
        burner.release()
    for burner in burners:
        try:
            burner.join()
        except TimeoutError as error:
            failures.append(error)
    if failures:
        raise failures[0]
