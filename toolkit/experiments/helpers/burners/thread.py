"""CPU work beside what is measured: what every kind of it does, and its plainest kind, a thread.

The work is that of "Python behind the scenes #13" (2021), `n += 1; n -= 1`, in pieces that are counted.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import override

START_SECONDS = 60.0   # 3.13t takes seconds to start a process on a busy machine
STOP_SECONDS = 20.0    # a thread that waits for its turn at a switch interval of 0.1 s among eight others takes some
PIECE = 1000           # iterations between two looks at whether to stop: 0.05 ms


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


def _wait(event: threading.Event, what: str) -> None:
    if not event.wait(START_SECONDS):
        raise TimeoutError(f"a CPU thread did not {what} within {START_SECONDS:g} s")
