"""How an HTTP helper process is spoken to: a JSON line when it is ready, then one JSON line for each one it reads."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PROBE_SECONDS = 0.005  # between two looks at how late the event loop runs


async def converse(ready: dict[str, Any], answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """Say that this process is ready and answer every line of standard input until it ends.

    What goes wrong in an answer becomes the answer {"error": ...}: whoever asked knows what to make of it.
    """
    say(ready)
    loop = asyncio.get_running_loop()
    # In a thread: epoll does not take every kind of standard input.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            reply = await answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            reply = {"error": f"{type(error).__name__}: {error}"}
        say(reply)


def say(fields: dict[str, Any]) -> None:
    """Print one JSON line."""
    print(json.dumps(fields), flush=True)


class Lateness:
    """How late an event loop calls what is due: what it had no time for shows here first."""

    def __init__(self) -> None:
        """Start to look; call where the loop runs."""
        self._loop = asyncio.get_running_loop()
        self._late: list[float] = []
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + PROBE_SECONDS
        self._handle = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._late.append(self._loop.time() - self._due)
        self._next()

    def forget(self) -> None:
        """Start anew."""
        self._late.clear()

    def p99(self) -> float:
        """Return what 99 % of the looks did not exceed, in seconds."""
        ordered = sorted(self._late)
        return ordered[(len(ordered) - 1) * 99 // 100] if ordered else 0.0

    def stop(self) -> None:
        """Stop looking."""
        if self._handle is not None:
            self._handle.cancel()
