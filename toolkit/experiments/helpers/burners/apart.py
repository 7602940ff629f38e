"""CPU work beside what is measured that shares nothing with it: processes, and subinterpreters with an own GIL."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from contextlib import suppress
from typing import override

from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.helpers.burners.thread import PIECE, START_SECONDS, STOP_SECONDS, Burner
from gilscope.toolkit.measure.program.interface import sibling

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


class PipeBurner(Burner):
    """What shares nothing with us and is reached through two pipes: it runs `ELSEWHERE`."""

    def __init__(self, tell: int, hear: int) -> None:
        """`tell` and `hear` are our ends; it has been started, and is ended when it does not get ready."""
        self._tell = tell
        self._hear = hear
        try:
            self._expect(b"r", "start")
        except BaseException:
            self.let_go()
            self.end()
            raise

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
        super().__init__(self._process.stdin.fileno(), self._process.stdout.fileno())

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
        super().__init__(tell, hear)

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
