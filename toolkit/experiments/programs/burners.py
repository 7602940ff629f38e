"""CPU work that runs beside what is measured: in threads, processes, or subinterpreters with a GIL of their own.

All are started and ready before the first burns, since starting anything beside busy processes may take seconds.
The work is that of "Python behind the scenes #13" (2021), `n += 1; n -= 1`, in pieces that are counted.
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

from runners import _interpreters
from toolkit.experiments.trial import sibling

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0   # 3.13t takes seconds to start a process on a busy machine
STOP_SECONDS = 20.0    # a thread that waits for its turn at a switch interval of 0.1 s among eight others takes some
PIECE = 1000           # iterations between two looks at whether to stop: 0.05 ms

# What burns elsewhere: says "r" when it is ready, burns from one byte to the next, says its iterations a second, and
# ends with its pipe.  It looks for the second byte every millisecond or so, since that is a system call.
ELSEWHERE = f"""
import os, time

def burn(told, tell):
    os.write(tell, b"r")
    if not os.read(told, 1):
        return
    os.set_blocking(told, False)
    pieces, begun = 0, time.perf_counter()
    os.write(tell, b"b")
    while True:
        n = 0
        for _ in range({PIECE}):
            n += 1
            n -= 1
        pieces += 1
        if pieces % 16 == 0:
            try:
                os.read(told, 1)
            except BlockingIOError:
                continue
            break
    rate = pieces * {PIECE} / (time.perf_counter() - begun)
    os.set_blocking(told, True)
    os.write(tell, b"%.0f\\n" % rate)
    os.read(told, 1)
"""


class Burner(ABC):
    """One piece of CPU work beside.  Making it starts it; then it is ready and idle."""

    @abstractmethod
    def begin(self) -> None:
        """Tell it to burn."""

    @abstractmethod
    def wait_burning(self) -> None:
        """Return when it burns."""

    @abstractmethod
    def tell_stop(self) -> None:
        """Tell it to stop burning."""

    @abstractmethod
    def rate(self) -> float:
        """Wait until it has stopped burning and return its iterations a second."""

    @abstractmethod
    def let_go(self) -> None:
        """Tell it to end, whatever it does."""

    @abstractmethod
    def end(self) -> None:
        """Wait for the end of one that was let go."""


class ThreadBurner(Burner):
    """A thread of this interpreter: with a GIL, it is what the others wait for."""

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
    def wait_burning(self) -> None:
        _wait(self._burning, "get to burn")

    @override
    def tell_stop(self) -> None:
        self._stop = True

    @override
    def rate(self) -> float:
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"a CPU thread did not stop within {STOP_SECONDS:g} s")
        return self._rate

    @override
    def let_go(self) -> None:
        self._stop = True
        self._go.set()

    @override
    def end(self) -> None:
        self.rate()

    def _run(self) -> None:
        self._ready.set()
        self._go.wait()
        pieces, begun = 0, time.perf_counter()
        self._burning.set()
        # While it burns it calls nothing that drops the GIL: that would let others in.
        while not self._stop:
            n = 0
            for _ in range(PIECE):
                n += 1
                n -= 1
            pieces += 1
        self._rate = pieces * PIECE / (time.perf_counter() - begun)


class PipeBurner(Burner):
    """What shares nothing with us and is reached through two pipes: it runs `ELSEWHERE`."""

    def __init__(self, tell: int, hear: int) -> None:
        """`tell` and `hear` are our ends; it has been started."""
        self._tell = tell
        self._hear = hear
        self._expect(b"r", "start")

    @override
    def begin(self) -> None:
        os.write(self._tell, b"g")

    @override
    def wait_burning(self) -> None:
        self._expect(b"b", "get to burn")

    @override
    def tell_stop(self) -> None:
        os.write(self._tell, b"s")

    @override
    def rate(self) -> float:
        said = b""
        while not said.endswith(b"\n"):
            said += self._listen(STOP_SECONDS, "stop")
        return float(said)

    def _expect(self, word: bytes, what: str) -> None:
        if (said := self._listen(START_SECONDS, what)) != word:
            raise RuntimeError(f"CPU work beside did not {what}, it said {said!r}")

    def _listen(self, seconds: float, what: str) -> bytes:
        if not select.select([self._hear], [], [], seconds)[0]:
            raise TimeoutError(f"CPU work beside did not {what} within {seconds:g} s")
        if not (said := os.read(self._hear, 1)):
            raise RuntimeError(f"CPU work beside ended before it could {what}{self._reason()}")
        return said

    def _reason(self) -> str:
        return ""


class ProcessBurner(PipeBurner):
    """A process of the same build."""

    def __init__(self) -> None:
        self._process = sibling("-c", f"{ELSEWHERE}\nburn(0, 1)", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            super().__init__(self._process.stdin.fileno(), self._process.stdout.fileno())
        except BaseException:
            self.let_go()
            self.end()
            raise

    @override
    def let_go(self) -> None:
        self._process.kill()

    @override
    def end(self) -> None:
        self._process.communicate()


class SubinterpreterBurner(PipeBurner):
    """An interpreter of this process with a GIL of its own, entered once by a thread of its own."""

    def __init__(self) -> None:
        told, tell = os.pipe()
        hear, said = os.pipe()
        self._error: BaseException | None = None
        self._may_close = threading.Event()
        self._thread = threading.Thread(target=self._host, args=(told, said), name="burner", daemon=True)
        self._thread.start()
        try:
            super().__init__(tell, hear)
        except BaseException:
            self.let_go()
            self.end()
            raise

    @override
    def let_go(self) -> None:
        os.close(self._tell)

    @override
    def end(self) -> None:
        self._may_close.set()
        self._thread.join(STOP_SECONDS)
        os.close(self._hear)
        if self._thread.is_alive():
            raise TimeoutError(f"a subinterpreter did not end within {STOP_SECONDS:g} s")

    @override
    def _reason(self) -> str:
        self._may_close.set()
        self._thread.join(1.0)
        return "" if self._error is None else f": {self._error}"

    def _host(self, told: int, said: int) -> None:
        try:
            interpreter = _interpreters.create()
            try:
                interpreter.exec(f"import sys\n{_interpreters.PRELUDE}{ELSEWHERE}\nburn({told}, {said})")
            finally:
                os.close(said)   # who waits for a word sees the end
                self._may_close.wait(STOP_SECONDS)   # 3.12 may crash when one ends while others burn
                interpreter.close()
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits for a word
            self._error = error
            with suppress(OSError):  # closed above unless there was no interpreter
                os.close(said)
        finally:
            os.close(told)


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
            burner.wait_burning()

    def stop(self) -> float:
        """Let all stop, and return the iterations a second that they did together; they stay until the block ends."""
        for burner in self._burners:
            burner.tell_stop()
        return sum(burner.rate() for burner in self._burners)


@contextmanager
def burning(kind: str, count: int) -> Iterator[Burners]:
    """Start `count` burners and give them, ready and idle; end them on leaving, whatever they do then.

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
        burner.let_go()
    for burner in burners:
        try:
            burner.end()
        except TimeoutError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _wait(event: threading.Event, what: str) -> None:
    if not event.wait(START_SECONDS):
        raise TimeoutError(f"a CPU thread did not {what} within {START_SECONDS:g} s")
